"""Strings to look for in a stream of text, whatever pieces it arrives in."""

from __future__ import annotations

from collections.abc import Sequence

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
        shown, stop, rest = cut(self._held + text, self._stops)
        self.found = self.found or stop
        self._held = "" if stop else rest
        return shown

    def flush(self) -> str:
        """The text held back, at the end of the stream."""
        shown, self._held = self._held, ""
        return shown


def cut(text: str, marks: Sequence[str]) -> tuple[str, str, str]:
    """Cuts a text at the mark that is complete first: what is before it, the mark, and what is after it.

    Where none is complete the second is empty, and the third is the longest ending that may become a mark. Of marks
    that are complete at the same character the longest counts. So it does not matter in which pieces a text arrives, if
    the third is put before the next piece.
    """
    found = [(at + len(mark), at, mark) for mark in marks if (at := text.find(mark)) >= 0]
    if found:
        end, at, mark = min(found)
        return text[:at], mark, text[end:]
    split = len(text) - max((pending(text, mark) for mark in marks), default=0)
    return text[:split], "", text[split:]


def pending(text: str, mark: str) -> int:
    """Length of the longest ending of a text that the mark begins with, less than the whole mark."""
    longest = min(len(text), len(mark) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(mark[:n])), 0)
