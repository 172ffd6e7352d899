"""Proposals from the session's own tokens: what followed the last time, when the text repeats itself."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from ds4py.errors import RequestError
from ds4py.speculative.draft import Draft, Ids, Request

if TYPE_CHECKING:
    from ds4py.session import Session

SIZES = (4, 3, 2)
"""Lengths of the n-grams that are looked up, the longest first."""
NONE = -1


class PromptLookupDrafter:
    """Proposes what followed the most recent earlier occurrence of the last tokens: 4 of them, else 3, else 2.

    Costs no model. `length` is how many tokens it proposes. Raises RequestError for a length outside 1 to 15.
    """

    name = "lookup"

    def __init__(self, length: int = 8) -> None:
        if length not in range(1, 16):
            raise RequestError(f"the length of a lookup is {length}, wanted 1 to 15 proposals")
        self.length = length
        self._index = Index()

    def propose(self, session: Session, request: Request, width: int) -> Draft | None:
        """What followed before, or None where the last two tokens are new."""
        found = self.find(session, width)
        return Draft.point_mass(found[0]) if found else None

    def find(self, session: Session, most: int) -> tuple[Ids, int] | None:
        """What followed before, at most `most` tokens, int32, and the length of the ending that was found."""
        self._index.follow(session.history())
        return self._index.continuation(min(self.length, most))


class Index:
    """Where each n-gram of a growing text ended last. Costs a few steps a token, whatever the text's length."""

    def __init__(self) -> None:
        self._tokens = np.empty(0, np.int32)
        self._grams = [Grams(size) for size in SIZES]

    def follow(self, tokens: Ids) -> None:
        """Makes `tokens`, int32 [n], the text; what it shares with the text before is kept."""
        kept = common_prefix(self._tokens, tokens)
        for grams in self._grams:
            grams.cut(self._tokens, min(kept, len(tokens) - 1))
            grams.grow(tokens)
        self._tokens = tokens

    def continuation(self, length: int) -> tuple[Ids, int] | None:
        """`length` tokens that followed the text's longest known ending, and the ending's length; None without one.

        Where the occurrence overlaps the ending the text has a period, which is continued.
        """
        for grams in self._grams:
            if (end := grams.earlier(self._tokens)) != NONE:
                return np.resize(self._tokens[end : end + length], length), grams.size
        return None


class Grams:
    """The n-grams of one size in a text, but for the one that ends it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._latest: dict[bytes, int] = {}
        self._before = array("q")  # by occurrence: where the same n-gram had ended before

    @property
    def _next_end(self) -> int:
        """Where the next n-gram to be added ends: each position from the first whole one has one."""
        return self.size + len(self._before)

    def earlier(self, tokens: Ids) -> int:
        """One past the latest earlier occurrence of the n-gram that ends the text, or NONE."""
        return self._latest.get(tokens[-self.size :].tobytes(), NONE)

    def grow(self, tokens: Ids) -> None:
        """Adds the n-grams up to, but not including, the one that ends the text."""
        for end in range(self._next_end, len(tokens)):
            key = tokens[end - self.size : end].tobytes()
            self._before.append(self._latest.get(key, NONE))
            self._latest[key] = end

    def cut(self, tokens: Ids, length: int) -> None:
        """Takes back the n-grams that do not end inside the first `length` of the text's tokens."""
        while self._before and self._next_end > length + 1:
            before = self._before.pop()
            key = tokens[self._next_end - self.size : self._next_end].tobytes()
            if before == NONE:
                del self._latest[key]
            else:
                self._latest[key] = before


def common_prefix(a: Ids, b: Ids) -> int:
    """How many tokens two texts begin with alike."""
    length = min(len(a), len(b))
    different = np.flatnonzero(a[:length] != b[:length])
    return int(different[0]) if len(different) else length
