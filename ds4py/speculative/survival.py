"""How likely proposals are accepted, learned from the cycles of one request.

Each estimate is P(proposal i is accepted | those before it are), and of the past only: what a block's confidences add
comes in after it has been drafted (`Confident.of`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PRIOR, PRIOR_WEIGHT = 0.5, 2.0
"""What a request starts with, and how many judged proposals that is worth."""
LONG, SHORT = 0.97, 0.7
"""What a cycle leaves of the evidence before it."""
UNUSUAL = 2.0
"""Standard deviations that are more than chance."""
FRESH, LATER = 0.6, 0.3
"""Weight of a block's confidences: where nothing was drafted for a while, and where drafts follow each other."""
RATE, MOST_SHIFT = 0.2, 3.0
"""Of the calibration: its step, and its limit, in logits."""
SUREST = 0.98


class Counts:
    """Accepted and judged proposals, of which a cycle leaves a share."""

    def __init__(self, memory: float, accepted: float = 0.0, judged: float = 0.0) -> None:
        self._memory, self.accepted, self.judged = memory, accepted, judged

    def add(self, accepted: int, judged: int) -> None:
        """Counts a cycle."""
        self.accepted = self._memory * self.accepted + accepted
        self.judged = self._memory * self.judged + judged


class Observed:
    """From outcomes alone, alike at all positions: accepted of judged proposals.

    Over many cycles, but where the last few differ from these by more than chance has it, over the last few.
    """

    def __init__(self, prior: float = PRIOR) -> None:
        self._long = Counts(LONG, prior * PRIOR_WEIGHT, PRIOR_WEIGHT)
        self._short = Counts(SHORT)

    def expected(self, count: int) -> list[float]:
        """The same for each of `count` proposals."""
        return [min(self._long.accepted / self._long.judged, SUREST)] * count

    def judged(self, width: int, accepted: int) -> None:
        """Learns from a cycle: counts the accepted ones of `width`, and the first that was not."""
        judged = min(accepted + 1, width)
        for each in (self._long, self._short):
            each.add(accepted, judged)
        rate = min(max(self._long.accepted / self._long.judged, 0.05), 0.95)
        surprise = abs(self._short.accepted - rate * self._short.judged)
        if surprise > UNUSUAL * math.sqrt(rate * (1 - rate) * self._short.judged):
            self._long = Counts(LONG, self._short.accepted + PRIOR, self._short.judged + 1)


class Confident:
    """From the drafter's confidences, whose logits are shifted to fit the outcomes.

    What it expects is the moving average of the blocks before, position by position.
    """

    def __init__(self) -> None:
        self._shift = 0.0
        self._mean: list[float] = []
        self._idle = True

    def of(self, confidence: Sequence[float]) -> list[float]:
        """A block's confidences, calibrated."""
        odds = math.exp(self._shift)
        shifted = [odds * each / (odds * each + 1 - each) for each in confidence]
        return [each if each < SUREST else SUREST for each in shifted]

    def expected(self, count: int) -> list[float]:
        """The averages for `count` proposals; a position that no block had is like the one before it."""
        known = self._mean or [PRIOR]
        return known[:count] + [known[-1]] * (count - len(known))

    def drafted(self, confidence: Sequence[float], width: int, accepted: int) -> None:
        """Learns from a cycle: the block's confidences, and the outcomes of the `width` that were verified."""
        now, weight = self.of(confidence), FRESH if self._idle else LATER
        means = self._mean + now[len(self._mean) :]
        moved = [mean + weight * (each - mean) for mean, each in zip(means, now, strict=False)]
        self._mean = moved + means[len(moved) :]
        shift = self._shift + RATE * (accepted - sum(now[: min(accepted + 1, width)]))
        self._shift = max(-MOST_SHIFT, min(MOST_SHIFT, shift))
        self._idle = False

    def idle(self) -> None:
        """A cycle for which it drafted nothing: its averages grow old."""
        self._idle = True
