"""What every bench prints first: the machine and the file it was run on."""

import os
import platform
from pathlib import Path

import ds4py
from ds4py.cost_store import processor as cpu_model


def print_header(path: str, **settings: object) -> None:
    """Prints machine, build, file and settings."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"machine  {cpu_model()}, {cores} cores, {platform.system()} {platform.machine()}")
    print(f"build    ds4py {ds4py.__version__} ({ds4py.__commit__})")
    print(f"file     {Path(path).name}, {Path(path).stat().st_size / 1e9:.2f} GB")
    print("settings " + ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items()), flush=True)
