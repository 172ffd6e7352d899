"""The number of CPU threads to compute with by default."""

from __future__ import annotations

from ds4py import _native


def default_threads() -> int:
    """Returns the physical cores that affinity and the control groups' quota leave to this process; at least 1."""
    return _native.default_threads()
