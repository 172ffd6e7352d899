"""The width that the drafter is sure of."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import Offer, Width
from ds4py.speculative.draft_length.ewma import Ewma
from ds4py.speculative.expected import survival
from ds4py.speculative.stats import Cycle

THRESHOLDS = (0.40, 0.30, 0.25, 0.20)
"""The first two are lucebox's."""


class Confidence(Width):
    """Nested thresholds on P(all proposals so far are accepted): the second joins at 0.40, the third at 0.30, ...

    The first always joins, and the last threshold goes on. Without confidences it is `Ewma`. Raises RequestError for
    thresholds outside 0 to 1.
    """

    def __init__(self, thresholds: Sequence[float] = THRESHOLDS) -> None:
        if not thresholds or any(not 0 <= each <= 1 for each in thresholds):
            raise RequestError(f"thresholds are {list(thresholds)}, wanted one or more from 0 to 1")
        self.thresholds = tuple(thresholds)
        self._otherwise = Ewma()

    def start(self) -> Confidence:
        """The same thresholds."""
        return Confidence(self.thresholds)

    def choose(self, offer: Offer) -> int:
        """All there are, where `admit` will be asked."""
        return offer.most if offer.confident else self._otherwise.choose(offer)

    def admit(self, offer: Offer, confidence: Sequence[float]) -> int:
        """The proposals before the first that misses its threshold."""
        wanted = [0.0, *self.thresholds]
        for k, reached in enumerate(survival(confidence)):
            if reached < wanted[min(k, len(wanted) - 1)]:
                return k
        return len(confidence)

    def observe(self, cycle: Cycle) -> None:
        """For where there are no confidences."""
        self._otherwise.observe(cycle)
