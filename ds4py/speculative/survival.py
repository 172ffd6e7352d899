"""Estimates of survival, learned from the cycles of one request (docs/dspark.md section 5.8).

The survival of position i is the probability that proposal i is accepted, given that those before it are. Every
estimate is made from earlier cycles only. What a block's own confidences add comes in after the block has been drafted
(`ConfidenceSurvival.calibrate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PRIOR, PRIOR_WEIGHT = 0.5, 2.0
"""The survival that a request starts with, and the number of decided proposals that it counts as."""
LONG, SHORT = 0.97, 0.7
"""The share of earlier evidence that remains after a cycle, in the long and in the short memory (λ of D64)."""
UNUSUAL = 2.0
"""The number of standard deviations from which on a difference is not chance (D65)."""
FRESH, LATER = 0.6, 0.3
"""The weight of a block's confidences (ω of D68), after cycles without a draft and after a cycle with one."""
RATE, MAX_SHIFT = 0.2, 3.0
"""The step of the calibration and its limit, both in logits (D67)."""
MAX_SURVIVAL = 0.98
"""The largest estimate."""


class Counts:
    """Counts of accepted and of decided proposals, of which each cycle leaves the share `memory`."""

    def __init__(self, memory: float, accepted: float = 0.0, decided: float = 0.0) -> None:
        self._memory, self.accepted, self.decided = memory, accepted, decided

    def add(self, accepted: int, decided: int) -> None:
        """Counts a cycle."""
        self.accepted = self._memory * self.accepted + accepted
        self.decided = self._memory * self.decided + decided


class OutcomeSurvival:
    """An estimate from outcomes alone, alike at all positions: accepted of decided proposals (D64).

    It is over many cycles. Where the last few differ from these by more than chance, it is over the last few (D65).
    """

    def __init__(self, prior: float = PRIOR) -> None:
        self._long = Counts(LONG, prior * PRIOR_WEIGHT, PRIOR_WEIGHT)
        self._short = Counts(SHORT)

    def estimate(self, count: int) -> list[float]:
        """Returns the survival of `count` positions, which is the same at each."""
        return [min(self._long.accepted / self._long.decided, MAX_SURVIVAL)] * count

    def observe(self, draft_length: int, accepted: int) -> None:
        """Learns from a cycle that verified `draft_length` proposals and accepted the first `accepted` of them.

        The accepted ones are decided, and so is the first that was not accepted.
        """
        decided = min(accepted + 1, draft_length)
        for each in (self._long, self._short):
            each.add(accepted, decided)
        rate = min(max(self._long.accepted / self._long.decided, 0.05), 0.95)
        surprise = abs(self._short.accepted - rate * self._short.decided)
        if surprise > UNUSUAL * math.sqrt(rate * (1 - rate) * self._short.decided):
            self._long = Counts(LONG, self._short.accepted + PRIOR, self._short.decided + 1)


class ConfidenceSurvival:
    """An estimate from the drafter's confidences, whose logits are shifted so that they fit the outcomes (D66, D67).

    Before a draft it is the moving average of earlier blocks' calibrated confidences, position by position (D68).
    """

    def __init__(self) -> None:
        self._shift = 0.0
        self._mean: list[float] = []
        self._idle = True

    def calibrate(self, confidence: Sequence[float]) -> list[float]:
        """Returns a block's calibrated confidences (D66)."""
        odds = math.exp(self._shift)
        shifted = [odds * each / (odds * each + 1 - each) for each in confidence]
        return [each if each < MAX_SURVIVAL else MAX_SURVIVAL for each in shifted]

    def estimate(self, count: int) -> list[float]:
        """Returns the averages of `count` positions. A position that no block has had is like the one before it."""
        known = self._mean or [PRIOR]
        return known[:count] + [known[-1]] * (count - len(known))

    def observe(self, confidence: Sequence[float], draft_length: int, accepted: int) -> None:
        """Learns from a cycle with a draft.

        Args:
            confidence: the raw confidences of the whole block.
            draft_length: how many of its proposals were verified.
            accepted: how many of these were accepted.
        """
        now, weight = self.calibrate(confidence), FRESH if self._idle else LATER
        means = self._mean + now[len(self._mean) :]
        moved = [mean + weight * (each - mean) for mean, each in zip(means, now, strict=False)]
        self._mean = moved + means[len(moved) :]
        shift = self._shift + RATE * (accepted - sum(now[: min(accepted + 1, draft_length)]))
        self._shift = max(-MAX_SHIFT, min(MAX_SHIFT, shift))
        self._idle = False

    def idle(self) -> None:
        """Notes a cycle in which this drafter drafted nothing, so that the averages are old."""
        self._idle = True
