"""Machines as a folder that looks like /proc, /sys and /dev."""

from __future__ import annotations

from pathlib import Path

from ds4py.doctor import Build, Machine

GIB = 1 << 30
USER, RENDER = 1000, 992


class FakeMachine:
    """A folder to fill; without more it is a computer with plenty of memory and no GPU."""

    def __init__(self, root: Path, memory_gib: float = 64) -> None:
        self.root = root
        kilobytes = int(memory_gib * GIB) // 1024
        self.write("proc/meminfo", f"MemTotal: {kilobytes} kB\nMemAvailable: {kilobytes} kB\n")
        self.write("etc/group", f"root:x:0:\nrender:x:{RENDER}:\n")

    def write(self, path: str, text: str = "") -> Path:
        """Writes a file with its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def card(self, vendor: str, device: str = "0x2684", driver: str | None = None, **sizes: int) -> None:
        """Adds a display controller on the PCI bus; `sizes` are what amdgpu says of its memory."""
        folder = "sys/bus/pci/devices/0000:01:00.0"
        self.write(f"{folder}/vendor", vendor)
        self.write(f"{folder}/device", device)
        self.write(f"{folder}/class", "0x030000")
        for name, value in sizes.items():
            self.write(f"{folder}/mem_info_{name}_total", str(value))
        if driver:
            drivers = self.root / "sys/bus/pci/drivers" / driver
            drivers.mkdir(parents=True)
            (self.root / folder / "driver").symlink_to(drivers)

    def nvidia_driver(self, version: str = "575.57.08") -> None:
        """Adds the kernel's part of NVIDIA's driver."""
        self.write(
            "proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Sat May 24 06:40:15 UTC 2025\n",
        )

    def library(self, name: str) -> None:
        """Adds a shared library where the linker looks."""
        self.write(f"usr/lib/x86_64-linux-gnu/{name}")

    def kfd(self, mode: int) -> None:
        """Adds ROCm's device file, which belongs to whoever runs the tests."""
        self.write("dev/kfd").chmod(mode)

    def seen(self, *, uid: int = USER, groups: tuple[int, ...] = ()) -> Machine:
        """Returns the machine as a user sees it."""
        return Machine(self.root, "linux", uid, groups)


def build_of(*backends: str) -> Build:
    """Returns a build with these backends and the CPU, none of which found a device of its own."""
    names = frozenset({"cpu", *backends})
    return Build(names, {name: {} for name in names}, {})
