"""Finds delimiters, such as `</think>` or a stop string, in a text that arrives in pieces."""

from __future__ import annotations

from collections.abc import Sequence


def split_at_first(text: str, delimiters: Sequence[str]) -> tuple[str, str, str]:
    """Splits a text at the delimiter that is complete first.

    Returns the text before the delimiter, the delimiter, and the text after it. If no delimiter is complete, the second
    is empty and the third is the longest ending of the text that may become a delimiter. If several delimiters end at
    the same character, the longest counts. The caller puts the third before the next piece; the result then does not
    depend on how the text is divided into pieces.
    """
    found = [(at + len(delimiter), at, delimiter) for delimiter in delimiters if (at := text.find(delimiter)) >= 0]
    if found:
        end, at, delimiter = min(found)
        return text[:at], delimiter, text[end:]
    split = len(text) - max((partial_match_length(text, delimiter) for delimiter in delimiters), default=0)
    return text[:split], "", text[split:]


def partial_match_length(text: str, delimiter: str) -> int:
    """Returns the length of the longest ending of `text` that is a beginning of `delimiter`, but not all of it."""
    longest = min(len(text), len(delimiter) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(delimiter[:n])), 0)
