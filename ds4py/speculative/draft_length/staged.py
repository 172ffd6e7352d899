"""Two, three, then all."""

from __future__ import annotations

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import MOST, Offer, Width
from ds4py.speculative.stats import Cycle

START, NEXT = 2, 3


class Staged(Width):
    """Starts with 2; 3 after a cycle that accepted all, `ceiling` after two in a row; 2 again after any other (ds4).

    Raises RequestError for a ceiling outside 2 to 15.
    """

    def __init__(self, ceiling: int = MOST) -> None:
        if ceiling not in range(START, MOST + 1):
            raise RequestError(f"the ceiling is {ceiling}, wanted {START} to {MOST} proposals")
        self.ceiling = ceiling
        self._full = 0

    def start(self) -> Staged:
        """From 2 again."""
        return Staged(self.ceiling)

    def choose(self, offer: Offer) -> int:
        """By the full cycles in a row."""
        return (START, min(NEXT, self.ceiling), self.ceiling)[min(self._full, 2)]

    def observe(self, cycle: Cycle) -> None:
        """Counts; a cycle without proposals says nothing."""
        if cycle.width:
            self._full = self._full + 1 if cycle.accepted == cycle.width else 0
