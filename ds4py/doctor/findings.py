"""Finds what is missing on a machine, and says how to fix it."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py.doctor.build import Build
from ds4py.doctor.machine import STRIX_HALO, Gpu, Machine

REBUILD = 'CMAKE_ARGS="{flags}" pip install --force-reinstall --no-deps .'
GIB = 1 << 30
ENOUGH_OF_MEMORY = 0.75
"""Share of an APU's memory that its GPU should be able to use. The kernel's default is half."""
LITTLE_MEMORY = 2 * GIB


@dataclass(frozen=True)
class Finding:
    """A problem that keeps a backend from being used, or from being used well."""

    backend: str
    """The backend that has the problem. A problem of `cpu` concerns everything."""
    found: str
    fix: str
    blocks: bool = True
    """Whether the backend cannot be used at all. If not, it can be used, but less well."""


def find_problems(machine: Machine, build: Build) -> list[Finding]:
    """Returns all problems of a machine with a build."""
    found = [*nvidia(machine, build), *amd(machine, build), *vulkan(machine, build)]
    return [*found, *undetected_cards(machine, build, found), *memory(machine)]


def undetected_cards(machine: Machine, build: Build, found: list[Finding]) -> list[Finding]:
    """Reports backends that found no device although a card is there and nothing known is missing."""
    blocked = {each.backend for each in found if each.blocks}
    reasons = {
        "cuda": (
            "NVIDIA",
            "the driver may be older than the CUDA toolkit of the build (nvidia-smi says what it can do)",
        ),
        "hip": ("AMD", "rocminfo says whether ROCm sees it; the build may be for another one (GPU_TARGETS)"),
    }
    return [
        Finding(backend, f"ggml's {backend} found no device, though a card of {vendor} is there", fix)
        for backend, (vendor, fix) in reasons.items()
        if build.devices.get(backend) == [] and machine.gpus_of(vendor) and backend not in blocked
    ]


def nvidia(machine: Machine, build: Build) -> list[Finding]:
    """Checks CUDA: the card, its driver, the driver's library, and whether the build has CUDA."""
    cards, driver = machine.gpus_of("NVIDIA"), machine.nvidia_driver
    found = []
    if cards and driver is None:
        used = cards[0].driver
        found.append(
            Finding(
                "cuda",
                f"an NVIDIA card ({cards[0].address}) without NVIDIA's driver"
                + (f" ('{used}' has it)" if used and used != "nvidia" else ""),
                "install the driver (Debian: apt install nvidia-driver, Ubuntu: ubuntu-drivers install) and restart; "
                "in a container: start it with --gpus all",
            )
        )
    if (cards or driver) and "cuda" not in build.present:
        flags = "-DGGML_CUDA=ON"
        fix = f"with the CUDA toolkit (nvcc) installed, in a clone: {REBUILD.format(flags=flags)}"
        found.append(Finding("cuda", "an NVIDIA card, and this build has no CUDA", fix))
    if "cuda" in build.present and (cards or driver) and not machine.has_library("libcuda.so.1"):
        found.append(
            Finding(
                "cuda",
                "libcuda.so.1, the driver's library, is missing",
                "install the driver's user space (Debian: libcuda1, Ubuntu: libnvidia-compute); in a container: start "
                "it with --gpus all",
            )
        )
    if driver and machine.exists("dev/nvidia0") and not machine.may_use("dev/nvidia0"):
        fix = "ask for access to /dev/nvidia0, or run as a user who has it"
        found.append(Finding("cuda", "/dev/nvidia0 may not be opened by this user", fix))
    return found


def amd(machine: Machine, build: Build) -> list[Finding]:
    """Checks HIP: the kernel driver, permissions, ROCm's library, the build, and the memory that the GPU may use."""
    cards = machine.gpus_of("AMD")
    if not cards:
        return []
    found = []
    target = machine.amd_target or ("gfx1151" if cards[0].device == STRIX_HALO else "the card's gfx number")
    if not build.present & {"hip", "vulkan"}:
        hip = REBUILD.format(flags=f"-DGGML_HIP=ON -DGPU_TARGETS={target}")
        vulkan_build = REBUILD.format(flags="-DGGML_VULKAN=ON")
        fix = f"in a clone, with ROCm installed: {hip}; or with Vulkan's headers and glslc: {vulkan_build}"
        found.append(Finding("hip", "an AMD GPU, and this build has neither HIP nor Vulkan", fix))
    found += _amd_devices(machine, cards[0])
    if "hip" in build.present and not machine.has_library("libamdhip64.so*"):
        fix = "install ROCm 6.1 or newer; for a folder that is not searched, set LD_LIBRARY_PATH"
        found.append(Finding("hip", "libamdhip64, ROCm's library, is missing", fix))
    return found + _shared_memory(machine, cards[0])


def _amd_devices(machine: Machine, card: Gpu) -> list[Finding]:
    """Checks the device files that ROCm opens."""
    if not machine.exists("dev/kfd"):
        driver = f"the kernel driver of the GPU is '{card.driver}'" if card.driver else "the GPU has no kernel driver"
        fix = "load it: modprobe amdgpu (a kernel with HSA_AMD); in a container: --device /dev/kfd --device /dev/dri"
        return [Finding("hip", f"/dev/kfd is missing; {driver}", fix)]
    if machine.may_use("dev/kfd"):
        return []
    group = machine.group_of("dev/kfd")
    fix = f"sudo usermod -aG {group},video $USER, and log in again; in a container: --group-add {group}"
    return [Finding("hip", f"/dev/kfd may not be opened by this user; it is the group {group}'s", fix)]


def _shared_memory(machine: Machine, card: Gpu) -> list[Finding]:
    """Checks how much memory the kernel lets a GPU use that shares the memory of the processor."""
    total = machine.memory_total
    if card.device != STRIX_HALO or total is None or card.gtt_bytes is None:
        return []
    usable = max(card.gtt_bytes, card.vram_bytes or 0)
    if usable >= ENOUGH_OF_MEMORY * total:
        return []
    wanted = int(total * 0.85) // GIB
    pages = wanted * GIB // 4096
    return [
        Finding(
            "hip",
            f"the GPU may use {usable / GIB:.0f} GiB of {total / GIB:.0f} GiB",
            f"more with the kernel parameter ttm.pages_limit={pages} ({wanted} GiB in pages of 4 KiB; "
            f"or amd-ttm --set {wanted} of amd-debug-tools), a restart, and the BIOS's share for graphics kept small",
            blocks=False,
        )
    ]


def vulkan(machine: Machine, build: Build) -> list[Finding]:
    """Checks Vulkan: the loader and a driver."""
    if "vulkan" not in build.present or machine.platform != "linux":
        return []
    found = []
    if not machine.has_library("libvulkan.so.1"):
        found.append(
            Finding("vulkan", "libvulkan.so.1, the loader, is missing", "Debian, Ubuntu: apt install libvulkan1")
        )
    if not machine.vulkan_drivers:
        fix = "Debian, Ubuntu: apt install mesa-vulkan-drivers (AMD, Intel), or NVIDIA's driver; vulkaninfo lists them"
        found.append(Finding("vulkan", "no Vulkan driver is installed (icd.d is empty)", fix))
    return found


def memory(machine: Machine) -> list[Finding]:
    """Reports a machine whose free memory is too small for real models."""
    available = machine.memory_available
    if available >= LITTLE_MEMORY:
        return []
    fix = "end other programs, or raise the limit of the container; without -m, the embedded pair needs little"
    return [Finding("cpu", f"{available >> 20} MiB of memory are left", fix, blocks=False)]


def missing_device(device: str, machine: Machine, build: Build, findings: list[Finding]) -> Finding:
    """Explains why a requested device is not here: a problem of its backend, or how to get the backend."""
    from ds4py.runtime.backend_status import backend_of

    backend = "hip" if device.lower().startswith("hip") else backend_of(device)
    own = [each for each in findings if each.backend == backend and each.blocks]
    if own:
        return Finding(backend, f"device '{device}' is not here: {own[0].found}", own[0].fix)
    if backend == "metal" and machine.platform != "darwin":
        return Finding(backend, f"device '{device}' is not here", "Metal is there on macOS only")
    if backend not in build.present:
        switch = {"cuda": "CUDA", "hip": "HIP", "vulkan": "VULKAN", "metal": "METAL"}.get(backend)
        fix = f"in a clone: {REBUILD.format(flags=f'-DGGML_{switch}=ON')}" if switch else "see 'ds4py doctor'"
        return Finding(backend, f"device '{device}' is not here: this build has no {backend}", fix)
    return Finding(backend, f"device '{device}' is not here", "the devices there are: see 'ds4py doctor'")
