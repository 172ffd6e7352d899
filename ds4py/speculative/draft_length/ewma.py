"""The width of what was accepted lately."""

from __future__ import annotations

from ds4py.speculative.draft_length.base import Offer, Width
from ds4py.speculative.stats import Cycle

FIRST, KEPT = 1.5, 0.7
NEAR = 0.1
"""Where all are always accepted, the average comes near to the width without reaching it; so near counts as there."""


class Ewma(Width):
    """One more than the moving average of accepted proposals: w = 0.7 w + 0.3 accepted, from 1.5 (lucebox)."""

    def __init__(self) -> None:
        self._accepted = FIRST

    def start(self) -> Ewma:
        """A new average."""
        return Ewma()

    def choose(self, offer: Offer) -> int:
        """The average, rounded down, and one."""
        return int(self._accepted + NEAR) + 1

    def observe(self, cycle: Cycle) -> None:
        """Adds what was accepted; a cycle without proposals says nothing."""
        if cycle.width:
            self._accepted = KEPT * self._accepted + (1 - KEPT) * cycle.accepted
