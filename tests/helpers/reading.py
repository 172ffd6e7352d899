"""Reads what other processes write, from pipes and terminals, and never waits for it without an end."""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable

SECONDS = 60.0
"""How long anything may take that comes at once on a quiet machine."""


def read_until(handle: int, words: bytes, seconds: float = SECONDS) -> bytes:
    """Reads until something that the pattern `words` fits has come; returns all of what was read."""
    return _read(handle, lambda found: re.search(words, found), repr(words), seconds)


def read_some(handle: int, size: int = 1, seconds: float = SECONDS) -> bytes:
    """Reads until there are `size` bytes at least, and returns all of what was read."""
    return _read(handle, lambda found: len(found) >= size, f"{size} bytes", seconds)


def _read(handle: int, enough: Callable[[bytes], object], wanted: str, seconds: float) -> bytes:
    end = time.monotonic() + seconds
    found = b""
    while not enough(found):
        ready, _, _ = select.select([handle], [], [], max(0.0, end - time.monotonic()))
        assert ready, f"no {wanted} within {seconds} s, but {found[-2000:]!r}"
        piece = os.read(handle, 65536)
        assert piece, f"it ended without {wanted}, after {found[-2000:]!r}"
        found += piece
    return found
