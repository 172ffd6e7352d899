"""Describes a machine: its GPUs, their drivers and libraries, its memory. All files are read below a root folder."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ds4py import _native

VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
DISPLAY, ACCELERATOR = "0x03", "0x12"  # PCI classes
STRIX_HALO = "0x1586"

LIBRARY_FOLDERS = (
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "usr/lib64",
    "lib",
    "usr/lib",
    "usr/local/lib",
    "usr/lib/wsl/lib",
    "opt/rocm/lib",
    "usr/local/cuda/lib64",
)


@dataclass(frozen=True)
class Gpu:
    """A display controller or accelerator on the PCI bus."""

    address: str
    vendor: str
    device: str
    driver: str | None
    gtt_bytes: int | None = None
    vram_bytes: int | None = None


@dataclass(frozen=True)
class Machine:
    """A machine as a user with these ids sees it below the folder `root`."""

    root: Path = Path("/")
    platform: str = sys.platform
    uid: int = field(default_factory=lambda: os.geteuid() if hasattr(os, "geteuid") else 0)
    groups: Sequence[int] = field(
        default_factory=lambda: [os.getegid(), *os.getgroups()] if hasattr(os, "getgroups") else []
    )

    def text(self, path: str | Path) -> str | None:
        """Returns the text of a file without white space around it, or None if it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None

    def number(self, path: str | Path) -> int | None:
        """Returns the whole number that a file holds, or None."""
        text = self.text(path)
        return int(text) if text and text.isdigit() else None

    @cached_property
    def gpus(self) -> list[Gpu]:
        """The GPUs of known vendors, ordered by address. Console cards of virtual machines have other vendors."""
        return [gpu for folder in sorted(self.root.glob("sys/bus/pci/devices/*")) if (gpu := self._gpu(folder))]

    def gpus_of(self, vendor: str) -> list[Gpu]:
        """Returns the GPUs of one vendor."""
        return [gpu for gpu in self.gpus if gpu.vendor == vendor]

    def _gpu(self, folder: Path) -> Gpu | None:
        kind = self.text(folder / "class") or ""
        vendor = VENDORS.get(self.text(folder / "vendor") or "")
        if vendor is None or not kind.startswith((DISPLAY, ACCELERATOR)):
            return None
        driver = folder / "driver"
        return Gpu(
            folder.name,
            vendor,
            self.text(folder / "device") or "",
            os.path.basename(os.readlink(driver)) if driver.is_symlink() else None,
            self.number(folder / "mem_info_gtt_total"),
            self.number(folder / "mem_info_vram_total"),
        )

    @cached_property
    def nvidia_driver(self) -> str | None:
        """The version of NVIDIA's kernel driver, or None if it is not loaded."""
        found = re.search(r"(?:Kernel Module|for \S+)\s+(\d+\.\S+)", self.text("proc/driver/nvidia/version") or "")
        return found[1] if found else None

    @cached_property
    def amd_target(self) -> str | None:
        """The compilation target of the first AMD GPU, such as gfx1151, or None."""
        for properties in sorted(self.root.glob("sys/class/kfd/kfd/topology/nodes/*/properties")):
            found = re.search(r"^gfx_target_version (\d+)$", self.text(properties) or "", re.MULTILINE)
            if found and int(found[1]):
                version = int(found[1])  # 110501 means 11.5.1; the last two are written in base 16
                return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
        return None

    def exists(self, path: str) -> bool:
        """Tells whether a file exists."""
        return (self.root / path).exists()

    def may_use(self, path: str) -> bool:
        """Tells whether this user may read and write a file."""
        try:
            status = (self.root / path).stat()
        except OSError:
            return False
        if self.uid == 0:
            return True
        mode = status.st_mode
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid in self.groups else 0
        return mode >> shift & 6 == 6

    def group_of(self, path: str) -> str:
        """Returns the name of a file's group, or its number if the group has no name."""
        gid = str((self.root / path).stat().st_gid)
        for line in (self.text("etc/group") or "").splitlines():
            fields = line.split(":")
            if len(fields) > 2 and fields[2] == gid:
                return fields[0]
        return gid

    def has_library(self, name: str) -> bool:
        """Tells whether the linker finds a shared library. `name` may contain a `*`."""
        return any(any(folder.glob(name)) for folder in self._library_folders())

    def _library_folders(self) -> Iterator[Path]:
        yield from (self.root / folder for folder in LIBRARY_FOLDERS)
        for file in sorted(self.root.glob("etc/ld.so.conf.d/*.conf")):
            for line in (self.text(file) or "").splitlines():
                if line.startswith("/"):
                    yield self.root / line.strip().lstrip("/")
        if self.root == Path("/"):
            yield from (Path(each) for each in os.environ.get("LD_LIBRARY_PATH", "").split(":") if each)

    @cached_property
    def vulkan_drivers(self) -> list[str]:
        """The names of the Vulkan driver descriptions."""
        folders = ("usr/share/vulkan/icd.d", "etc/vulkan/icd.d", "usr/local/share/vulkan/icd.d")
        found = [path.stem for folder in folders for path in sorted((self.root / folder).glob("*.json"))]
        if self.root == Path("/"):
            chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES") or ""
            found += [Path(path).stem for each in chosen.split(":") if each for path in glob.glob(each)]
        return found

    @cached_property
    def memory_total(self) -> int | None:
        """The memory in bytes, or None if /proc does not tell."""
        found = re.search(r"^MemTotal:\s+(\d+) kB", self.text("proc/meminfo") or "", re.MULTILINE)
        return int(found[1]) * 1024 if found else None

    @cached_property
    def memory_available(self) -> int:
        """The bytes that this process can still take by the system and its control groups."""
        return int(_native.available_memory(str(self.root)))
