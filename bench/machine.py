"""Prints what every bench prints first: the machine and the file that it runs on."""

import os
import platform
from pathlib import Path

import ds4py
from ds4py.doctor.build import Build
from ds4py.doctor.machine import Machine
from ds4py.doctor.report import driver_of
from ds4py.speculative.cost_store import processor as cpu_model

POWER = {
    "platform profile": "sys/firmware/acpi/platform_profile",
    "governor": "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "GPU level": "sys/class/drm/card*/device/power_dpm_force_performance_level",
}
"""The files in which Linux has settings of clocks."""


def print_header(path: str, **settings: object) -> None:
    """Prints machine, devices, clocks, build, file and settings."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"machine  {cpu_model()}, {cores} cores, {platform.system()} {platform.machine()}")
    print(f"devices  {devices(Build.here(), Machine())}")
    print(f"clocks   {clocks(Path('/'))}")
    print(f"build    ds4py {ds4py.__version__} ({ds4py.__commit__})")
    print(f"file     {Path(path).name}, {Path(path).stat().st_size / 1e9:.2f} GB")
    print("settings " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()), flush=True)


def devices(build: Build, machine: Machine) -> str:
    """Names the devices beside the CPU, with their drivers if the system tells them."""
    found = []
    for backend, offered in build.devices.items():
        driver = driver_of(backend, machine)
        words = f", driver {driver}" if driver else ""
        found += [f"{each['name']} ({each['description']}{words})" for each in offered if each["kind"] != "cpu"]
    return ", ".join(found) or "the CPU alone"


def clocks(root: Path) -> str:
    """Describes the power profile and the clocks of processor and GPU, as files below `root` tell them."""
    machine = Machine(root)
    known = {name: {machine.text(file) for file in root.glob(path)} - {None} for name, path in POWER.items()}
    found = [f"{name} {'/'.join(sorted(map(str, values)))}" for name, values in known.items() if values]
    return ", ".join(found) or "the system says nothing"
