"""The interface of grammars, and the masking of the target's rows by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.uint8]
"""A bit for each token of the vocabulary, the lowest first; bits past the vocabulary mean nothing."""

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


class Matcher(Protocol):
    """The state of one generation in a grammar."""

    def mask(self) -> Mask | None:
        """Returns the tokens that may follow, None for all. Stop tokens are allowed where the text may end."""

    def advance(self, token: int) -> None:
        """Appends a token that the latest mask allows."""

    def rollback(self, count: int) -> None:
        """Takes back the last tokens, at most those since the start."""

    @property
    def complete(self) -> bool:
        """Whether nothing can follow any more but a stop token."""


class Constraint(Protocol):
    """A grammar that generations can be held to; for as many as one likes, one after the other or at once."""

    def start(self) -> Matcher:
        """A matcher at the grammar's beginning."""


class Guide:
    """A matcher in the cycles of one request: the rows of a verify are masked before any policy is applied.

    So what is accepted follows the policy's distribution over what the grammar allows, exactly. The row after
    proposal i is masked by what may follow it. The proposals behind one that is not allowed need no rows at all: that
    one has p = 0, is never accepted, and the token in its place comes from the residual of its own row.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._masks: list[Mask | None] = []

    def allowed(self, proposals: Ids) -> int:
        """Returns how many leading proposals the grammar allows. Keeps the masks of their rows, and of the anchor's."""
        self._masks = [self._matcher.mask()]
        for token in proposals.tolist():
            if not allows(self._masks[-1], token):
                break
            self._matcher.advance(token)
            self._masks.append(self._matcher.mask())
        count = len(self._masks) - 1
        self._matcher.rollback(count)
        return count

    def rows(self, logits: Floats, proposals: int) -> Floats:
        """A copy of the rows [allowed + 1, vocab] in which tokens that are not allowed have -inf.

        Where more proposals follow, one row comes after them that decides nothing.
        """
        found = np.zeros((proposals + 1, logits.shape[1]), np.float32)
        for row, given, mask in zip(found, logits, self._masks, strict=False):
            row[:] = given if mask is None else np.where(unpacked(mask, len(row)), given, np.float32(-np.inf))
        return found

    def advance(self, tokens: Iterable[int]) -> None:
        """Appends the tokens that a cycle emits."""
        for token in tokens:
            self._matcher.advance(token)

    @property
    def complete(self) -> bool:
        """Whether nothing can follow any more."""
        return self._matcher.complete


def unpacked(mask: Mask, vocabulary: int) -> npt.NDArray[np.bool_]:
    """Returns for each token whether it is allowed, as bool [vocabulary]."""
    return np.unpackbits(mask, count=vocabulary, bitorder="little").view(np.bool_)


def packed(tokens: Sequence[int] | frozenset[int], vocabulary: int, *, allowed: bool = True) -> Mask:
    """A mask that allows these tokens only; or with `allowed` False, all others."""
    flags = np.full(vocabulary, not allowed)
    flags[list(tokens)] = allowed
    return np.packbits(flags, bitorder="little")


def allows(mask: Mask | None, token: int) -> bool:
    """Whether a mask allows a token."""
    return mask is None or bool(mask[token >> 3] >> (token & 7) & 1)
