"""The same width every cycle."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import MOST, Offer, Width

LONG = 1 << 30
"""Cycles of a request, and more."""


@dataclass(frozen=True)
class Fixed(Width):
    """The same width every cycle; the largest is all that the drafter makes. Raises RequestError outside 0 to 15."""

    width: int = MOST

    def __post_init__(self) -> None:
        if not isinstance(self.width, int) or self.width not in range(MOST + 1):
            raise RequestError(f"width is {self.width!r}, wanted 0 to {MOST} proposals")

    def choose(self, offer: Offer) -> int:
        """The width."""
        return self.width

    @property
    def rest(self) -> int:
        """A width of 0 stays."""
        return LONG
