"""Whether other processes have the same model in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def others_with(files: Iterable[str], proc: Path = Path("/proc")) -> list[int]:
    """Returns ids of other processes that have one of the files mapped, ascending; only those this user may see.

    Returns none on a system without /proc.
    """
    wanted = {os.path.realpath(file) for file in files}
    found = []
    for process in proc.glob("[0-9]*"):
        try:
            mapped = {line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines() if "/" in line}
        except OSError:
            continue
        if int(process.name) != os.getpid() and wanted & mapped:
            found.append(int(process.name))
    return sorted(found)


def shared_memory_note(files: Sequence[str], size: int, proc: Path = Path("/proc")) -> str | None:
    """Returns a note where another process has a model of `size` bytes mapped that takes over a third of memory.

    Returns None where there is nothing to say, and on a system without /proc.
    """
    try:
        total = int((proc / "meminfo").read_text().split("MemTotal:")[1].split()[0]) * 1024
    except (OSError, IndexError, ValueError):
        return None
    if size * 3 <= total or not (others := others_with(files, proc)):
        return None
    who = ", ".join(map(str, others))
    return f"process {who} has this model loaded, too: together they may not fit into memory, and then both get slow"
