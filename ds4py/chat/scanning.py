"""Finds marks, such as `</think>` or a stop string, in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence


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
