"""How many threads to use by default."""

from __future__ import annotations

from ds4py import _native


def default_threads() -> int:
    """Physical cores that affinity and the control groups' quota leave to this process; at least 1."""
    return _native.default_threads()
