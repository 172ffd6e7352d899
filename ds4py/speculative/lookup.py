"""Prompt lookup: proposals from the session's own tokens where the text repeats itself (docs/dspark.md section 5.7)."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterable

import numpy as np

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.errors import RequestError
from ds4py.prefix_cache.common_prefix import common_prefix
from ds4py.speculative.draft import Draft, Ids
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession

SIZES = (4, 3, 2)
"""The lengths of the n-grams that are looked up, the longest first."""
NONE = -1
BITS = 32
"""The bits of one token in the key of an n-gram."""


class PromptLookupDrafter:
    """Proposes what followed the latest earlier occurrence of the text's last 4 tokens, or else of its last 3 or 2.

    It needs no model. `length` is how many tokens it proposes. Raises RequestError for a length outside 1 to 15.
    """

    name = "lookup"

    def __init__(self, length: int = 8) -> None:
        if length not in range(1, MAX_DRAFT_LENGTH + 1):
            raise RequestError(f"the length of a lookup is {length}, wanted 1 to {MAX_DRAFT_LENGTH} proposals")
        self.length = length
        self._index = Index()
        self._seen: tuple[weakref.ref[TargetSession], int] | None = None

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns what followed before, with q = 1; None where the last two tokens were not there before."""
        found = self.find(session, draft_length)
        return Draft.point_mass(found[0]) if found else None

    def find(self, session: TargetSession, limit: int) -> tuple[Ids, int] | None:
        """Returns what followed before, int32 [<= limit], and the length of the ending that was found; else None."""
        self._follow(session)
        return self._index.continuation(min(self.length, limit))

    def _follow(self, session: TargetSession) -> None:
        """Brings the index up to the session's text; where the text has only grown, new tokens are added."""
        seen, self._seen = self._seen, None  # an interrupted index is not used again
        if seen is None:
            self._index = Index()
        grown = seen is not None and seen[0]() is session and seen[1] == session.rewinds and self._index.length > 0
        new = session.history(self._index.length - 1).tolist() if grown else []
        if new and new[0] == self._index.last:
            self._index.extend(new[1:])
        else:
            self._index.follow(session.history())
        self._seen = weakref.ref(session), session.rewinds


class Index:
    """An index of where each n-gram of a growing text ended last.

    A new token takes a few steps, whatever the text's length is.
    """

    def __init__(self) -> None:
        self._tokens = array("i")
        self._grams = [Grams(size) for size in SIZES]

    @property
    def length(self) -> int:
        """The number of tokens of the text."""
        return len(self._tokens)

    @property
    def last(self) -> int:
        """The last token."""
        return self._tokens[-1]

    def follow(self, tokens: Ids) -> None:
        """Makes `tokens`, int32 [n], the text; the prefix that it shares with the text before is kept."""
        kept = common_prefix(np.frombuffer(self._tokens, np.int32), tokens) if self._tokens else 0
        for grams in self._grams:
            grams.cut(self._tokens, kept)
        del self._tokens[kept:]
        self.extend(tokens[kept:].tolist())

    def extend(self, tokens: Iterable[int]) -> None:
        """Adds tokens to the end of the text."""
        for token in tokens:
            for grams in self._grams:
                grams.add(len(self._tokens), token)
            self._tokens.append(token)

    def continuation(self, length: int) -> tuple[Ids, int] | None:
        """Returns `length` tokens that followed the text's longest known ending, and that ending's length.

        Returns None where no ending is known. Where the occurrence overlaps the ending, the text has a period, which is
        continued.
        """
        for grams in self._grams:
            if (end := grams.earlier()) != NONE:
                return np.resize(np.array(self._tokens[end : end + length], np.int32), length), grams.size
        return None


class Grams:
    """The n-grams of one size in a text, except for the one at its end."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._mask = (1 << BITS * size) - 1
        self._ending = 0  # the n-gram that ends the text
        self._latest: dict[int, int] = {}
        self._before = array("q")  # by occurrence: where the same n-gram had ended before

    def earlier(self) -> int:
        """Returns the position behind the latest earlier occurrence of the n-gram that ends the text, or NONE."""
        return self._latest.get(self._ending, NONE)

    def add(self, length: int, token: int) -> None:
        """Adds a token to a text of `length` tokens; the n-gram that ended it is inside the text now."""
        if length >= self.size:
            self._before.append(self._latest.get(self._ending, NONE))
            self._latest[self._ending] = length
        self._ending = (self._ending << BITS | token) & self._mask

    def cut(self, tokens: array[int], length: int) -> None:
        """Removes what was added for the tokens beyond the first `length` of the text."""
        while self._before and (end := self.size + len(self._before) - 1) >= length:
            key, before = self._key(tokens[end - self.size : end]), self._before.pop()
            if before == NONE:
                del self._latest[key]
            else:
                self._latest[key] = before
        self._ending = self._key(tokens[max(0, length - self.size) : length])

    def _key(self, tokens: Iterable[int]) -> int:
        key = 0
        for token in tokens:
            key = key << BITS | token
        return key
