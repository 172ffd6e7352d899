"""What a bench says of the machine that it ran on."""

from __future__ import annotations

from pathlib import Path

import machine
import pytest

from ds4py.doctor.build import Build, Device
from ds4py.doctor.machine import Machine

pytestmark = pytest.mark.fast


def put(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text + "\n")


def test_clocks(tmp_path: Path) -> None:
    assert machine.clocks(tmp_path) == "the system says nothing"
    put(tmp_path, "sys/firmware/acpi/platform_profile", "performance")
    for card, level in ("card0", "auto"), ("card1", "high"), ("card2", "high"):
        put(tmp_path, f"sys/class/drm/{card}/device/power_dpm_force_performance_level", level)
    assert machine.clocks(tmp_path) == "platform profile performance, GPU level auto/high"


def test_devices_with_their_drivers(tmp_path: Path) -> None:
    def device(name: str, kind: str) -> Device:
        return Device(
            name=name,
            description="a card",
            kind=kind,
            id="",
            memory_free=0,
            memory_total=0,
            addresses_host_memory=False,
        )

    build = Build(frozenset(), {}, {"cpu": [device("CPU", "cpu")]})
    assert machine.devices(build, Machine(tmp_path)) == "the CPU alone"
    put(tmp_path, "sys/module/amdgpu/version", "6.8")
    build.devices.update(hip=[device("ROCm0", "igpu")], vulkan=[device("Vulkan0", "igpu")])
    assert machine.devices(build, Machine(tmp_path)) == "ROCm0 (a card, driver 6.8), Vulkan0 (a card)"


def test_the_header(capsys: pytest.CaptureFixture[str]) -> None:
    machine.print_header(__file__, threads=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["machine", "devices", "clocks", "build", "file", "settings"]
