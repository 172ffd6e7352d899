"""Strings to look for in a stream of text, whatever pieces it arrives in."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.chat.scanning import split_at_first
from ds4py.errors import RequestError


class StopStrings:
    """Passes text on until one of `stops` is complete; holds back what may be the beginning of one.

    Raises RequestError for an empty stop string.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if isinstance(stops, str):
            raise RequestError(f"stop is the string {stops!r}, wanted a sequence of strings")
        if any(not s for s in stops):
            raise RequestError("a stop string is empty: it would stop before the first token")
        self._stops = tuple(stops)
        self._held = ""
        self.found = ""
        """The stop string that is complete."""

    @property
    def sought(self) -> bool:
        """Whether there are any."""
        return bool(self._stops)

    def push(self, text: str) -> str:
        """Text that may be shown now; sets `found` when a stop string is complete (it is not shown)."""
        if not self._stops:
            return text
        shown, stop, rest = split_at_first(self._held + text, self._stops)
        self.found = self.found or stop
        self._held = "" if stop else rest
        return shown

    def flush(self) -> str:
        """The text held back, at the end of the stream."""
        shown, self._held = self._held, ""
        return shown
