"""Finds stop strings in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.chat.scanning import split_at_first
from ds4py.errors import RequestError


class StopStrings:
    """Passes text on until it contains one of `stops`; holds back text that may be the beginning of a stop string.

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
        """The first stop string in the text; empty while there is none."""

    @property
    def sought(self) -> bool:
        """Whether there are stop strings to look for."""
        return bool(self._stops)

    def push(self, text: str) -> str:
        """Returns the text that is safe to show. A complete stop string sets `found` and is left out of the text."""
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
