"""The model that ships inside the package, for a machine that has no other."""

from __future__ import annotations

from pathlib import Path

TARGET = Path(__file__).parent / "data" / "tiny-target.gguf"
"""A tiny random target: everything works with it, but its text is noise."""
