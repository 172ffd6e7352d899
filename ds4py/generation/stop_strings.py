"""Finds stop strings in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.chat.scanning import split_at_first
from ds4py.errors import RequestError


class StopStrings:
    """Passes text on until it contains one of `stops`, and holds back what may be the beginning of one.

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
        """The stop string that the text contains; empty until then."""

    @property
    def sought(self) -> bool:
        """Whether there are stop strings to look for."""
        return bool(self._stops)

    def push(self, text: str) -> str:
        """Returns the text that may be shown now; sets `found` where a stop string is complete, and leaves it out."""
        if not self._stops:
            return text
        shown, stop, rest = split_at_first(self._held + text, self._stops)
        self.found = self.found or stop
        self._held = "" if stop else rest
        return shown

    def flush(self) -> str:
        """Returns the text held back, at the end of the stream."""
        shown, self._held = self._held, ""
        return shown
