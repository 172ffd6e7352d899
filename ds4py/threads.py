"""How many threads to use by default."""

from __future__ import annotations

import math
import os
from pathlib import Path

_CPU = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def _physical(cpus: set[int]) -> int:
    """Cores that the logical cpus belong to; siblings of a core share its units."""
    cores = set()
    for cpu in cpus:
        try:
            cores.add((_CPU / f"cpu{cpu}/topology/thread_siblings_list").read_text())
        except OSError:
            return len(cpus)
    return len(cores)


def _quota() -> float:
    """The cgroup's limit in cpus; infinite where there is none."""
    try:
        limit, period = _QUOTA.read_text().split()
        return math.inf if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return math.inf


def default_threads() -> int:
    """Physical cores that affinity and the cgroup's quota leave to this process; at least 1."""
    return max(1, int(min(_physical(_allowed()), _quota())))
