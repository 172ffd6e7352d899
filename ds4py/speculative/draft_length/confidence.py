"""The policy `confidence`: as many proposals as the drafter is sure of."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.errors import RequestError
from ds4py.speculative.cost_model import prefix_survival
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.draft_length.ewma import Ewma
from ds4py.speculative.stats import Cycle

THRESHOLDS = (0.40, 0.30, 0.25, 0.20)
"""The thresholds of proposals 2 to 5. The first two are lucebox's."""


class Confidence(DraftLengthPolicy):
    """Admits a proposal while the probability that all proposals up to it are accepted reaches a threshold.

    The first proposal is always admitted, the second from `thresholds[0]` on, the third from `thresholds[1]` on. The
    last threshold also holds for all later proposals. Without confidences the policy is `Ewma`. Raises RequestError for
    thresholds outside 0 to 1.
    """

    def __init__(self, thresholds: Sequence[float] = THRESHOLDS) -> None:
        if not thresholds or any(not 0 <= each <= 1 for each in thresholds):
            raise RequestError(f"thresholds are {list(thresholds)}, wanted one or more from 0 to 1")
        self.thresholds = tuple(thresholds)
        self._otherwise = Ewma()

    def start(self) -> Confidence:
        """Returns a policy of the same thresholds."""
        return Confidence(self.thresholds)

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the whole block where the drafter has confidences, and else the choice of `Ewma`."""
        return estimate.max_draft_length if estimate.has_confidence else self._otherwise.choose(estimate)

    def admit(self, estimate: DraftEstimate, confidence: Sequence[float]) -> int:
        """Returns the number of proposals before the first that misses its threshold."""
        wanted = [0.0, *self.thresholds]
        for k, reached in enumerate(prefix_survival(confidence)):
            if reached < wanted[min(k, len(wanted) - 1)]:
                return k
        return len(confidence)

    def observe(self, cycle: Cycle) -> None:
        """Hands the cycle to `Ewma`, which decides where there are no confidences."""
        self._otherwise.observe(cycle)
