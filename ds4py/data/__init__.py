"""The pair that ships inside the package, for a machine that has no other."""

from __future__ import annotations

from pathlib import Path

_DATA = Path(__file__).parent

TARGET = _DATA / "tiny-target.gguf"
"""A small trained target. What it can do, and what it was trained on, is in CARD."""

DRAFTER = _DATA / "tiny-drafter.gguf"
"""A DSpark drafter for it."""

CARD = _DATA / "tiny.md"
"""The pair's model card."""
