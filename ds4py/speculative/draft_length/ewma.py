"""The policy `ewma`: a moving average of what was accepted."""

from __future__ import annotations

from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.stats import Cycle

FIRST, KEPT = 1.5, 0.7
"""The average at the start of a request, and the share of it that a cycle keeps."""
NEAR = 0.1
"""The distance to a whole number that counts as having reached it. Where everything is always accepted, the average
approaches the draft length without reaching it."""


class Ewma(DraftLengthPolicy):
    """Takes one more than the average w of accepted proposals: w = 0.7 w + 0.3 accepted, from 1.5 on (lucebox)."""

    def __init__(self) -> None:
        self._accepted = FIRST

    def start(self) -> Ewma:
        """Returns a policy whose average is at its start."""
        return Ewma()

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the average, rounded down, plus one."""
        return int(self._accepted + NEAR) + 1

    def observe(self, cycle: Cycle) -> None:
        """Adds the accepted proposals to the average; cycles without proposals do not count."""
        if cycle.draft_length:
            self._accepted = KEPT * self._accepted + (1 - KEPT) * cycle.accepted
