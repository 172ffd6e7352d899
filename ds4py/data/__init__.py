"""The small pair that ships inside the package: paths of its target, its drafter and its model card."""

from __future__ import annotations

from pathlib import Path

_DATA = Path(__file__).parent

TARGET = _DATA / "tiny-target.gguf"
"""A small trained target model. CARD says what it was trained on and what it can do."""

DRAFTER = _DATA / "tiny-drafter.gguf"
"""The DSpark drafter that was trained for TARGET."""

CARD = _DATA / "tiny.md"
"""The pair's model card, in Markdown."""
