"""The include graph of the native sources, by rooms (folders)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from paths import ROOT

NATIVE = ROOT / "native"
SUFFIXES = {".h", ".cpp", ".cuh", ".cu", ".hip", ".mm", ".metal"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ROOTS = (NATIVE / "include", NATIVE / "src", NATIVE / "kernels")
"""Folders that the build searches for headers."""


def sources(folder: Path) -> list[Path]:
    """The sources and headers below a folder."""
    return sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES)


@cache
def included(file: Path) -> frozenset[Path]:
    """The project's headers that a file includes; those of ggml and of the system are left out."""
    names = INCLUDE.findall(file.read_text(encoding="utf-8"))
    places = [[root / name for root in (file.parent, *ROOTS) if (root / name).is_file()] for name in names]
    return frozenset(found[0].resolve() for found in places if found)


def room_of(file: Path) -> str:
    """The room of a file: "include", "bindings", "c", a folder of native/src such as "graph", or one of two for kernels.

    "kernels/cpu" has the CPU's kernels. All others are "kernels": the launcher's interface and the sources behind it,
    which one build compiles for a device and another for the emulator.
    """
    parts = file.relative_to(NATIVE).parts
    if parts[0] == "src":
        return parts[1]
    return "kernels/cpu" if parts[:2] == ("kernels", "cpu") else parts[0]


def room_graph() -> dict[str, set[str]]:
    """Every room of the native sources with the rooms whose headers its files include."""
    graph: dict[str, set[str]] = {}
    for file in sources(NATIVE):
        graph.setdefault(room_of(file), set()).update(room_of(header) for header in included(file))
    return {room: known - {room} for room, known in graph.items()}


def header_graph() -> dict[str, set[str]]:
    """Every native file with the headers that it includes, as paths below `native`."""
    return {
        str(file.relative_to(NATIVE)): {str(header.relative_to(NATIVE)) for header in included(file)}
        for file in sources(NATIVE)
    }
