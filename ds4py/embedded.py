"""The pair that ships inside the package, for a machine that has no other."""

from __future__ import annotations

from pathlib import Path

_DATA = Path(__file__).parent / "data"

TARGET = _DATA / "tiny-target.gguf"
"""A tiny random target: everything works with it, but its text is noise."""

DRAFTER = _DATA / "tiny-drafter.gguf"
"""A tiny random drafter for it."""
