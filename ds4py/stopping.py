"""Stop strings in a stream of text, whatever pieces it arrives in."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.errors import RequestError


class StopStrings:
    """Passes text on until one of `stops` appears; holds back what may be the beginning of one.

    Raises RequestError for an empty stop string.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        if isinstance(stops, str):
            raise RequestError(f"stop is the string {stops!r}, wanted a sequence of strings")
        if any(not s for s in stops):
            raise RequestError("a stop string is empty: it would stop before the first token")
        self._stops = tuple(stops)
        self._held = ""
        self.found = False

    def push(self, text: str) -> str:
        """Text that may be shown now; sets `found` when a stop string is complete (it is not shown)."""
        self._held += text
        at = min((i for i in (self._held.find(s) for s in self._stops) if i >= 0), default=None)
        if at is not None:
            self.found = True
            shown, self._held = self._held[:at], ""
            return shown
        keep = self._pending()
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return shown

    def flush(self) -> str:
        """The text held back, at the end of the stream."""
        shown, self._held = self._held, ""
        return shown

    def _pending(self) -> int:
        """Length of the longest end of the held text that begins a stop string."""
        longest = max((len(s) - 1 for s in self._stops), default=0)
        for n in range(min(longest, len(self._held)), 0, -1):
            if any(s.startswith(self._held[-n:]) for s in self._stops):
                return n
        return 0
