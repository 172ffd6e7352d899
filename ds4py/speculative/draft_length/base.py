"""The interface of draft length policies, and what they are told before a cycle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ds4py.deprecated import renamed_attributes
from ds4py.speculative.cost_model import best_draft_length
from ds4py.speculative.costs import Curve
from ds4py.speculative.stats import Cycle


@dataclass(frozen=True)
class DraftEstimate:
    """Estimates of the acceptance and the cost of a cycle's proposals, before they are drafted.

    Attributes:
        survival: the probability that a proposal is accepted, given that those before it are; one for each position
            that can be proposed. It comes from earlier cycles (docs/dspark.md section 5.8).
        curve: the times of cycles at this depth with this drafter; None while they are being measured.
        has_confidence: whether the drafter gives a confidence for each proposal, so that `DraftLengthPolicy.admit` is
            asked.
        unmeasured: the largest draft length whose time has not been measured; None where all have been.
        oldest: the draft length from 1 on whose time was measured longest ago.
    """

    survival: Sequence[float]
    curve: Curve | None
    has_confidence: bool = False
    unmeasured: int | None = None
    oldest: int = 0

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes(
            {
                "expected": "survival",
                "most": "max_draft_length",
                "confident": "has_confidence",
                "unknown": "unmeasured",
                "settled": "settled_curve",
            }
        )

    @property
    def max_draft_length(self) -> int:
        """The largest draft length that this cycle can have."""
        return len(self.survival)

    @property
    def settled_curve(self) -> Curve | None:
        """The curve, once every draft length has been measured; None before, when it cannot decide yet."""
        return self.curve if self.unmeasured is None else None

    @cached_property
    def best(self) -> tuple[int, float]:
        """The draft length of most tokens a second, and that rate (D57); (0, 0.0) without a curve."""
        if self.curve is None:
            return 0, 0.0
        return best_draft_length(self.survival, self.curve.verify, self.curve.draft)


class DraftLengthPolicy(ABC):
    """A rule that chooses the draft length of each cycle of a request.

    A choice never depends on the proposals that it admits, because that would bias sampled text (docs/dspark.md section
    3.7). So `choose` is asked before anything is proposed, and `admit` shortens the block from left to right. A cycle
    verifies what the policy returns, or less where fewer tokens were proposed or may still be emitted.
    """

    def start(self) -> DraftLengthPolicy:
        """Returns the policy for one request; a policy that learns returns a fresh one."""
        return self

    @abstractmethod
    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the draft length of the next cycle, at most; 0 is a plain step, for which nothing is drafted."""

    def admit(self, estimate: DraftEstimate, confidence: Sequence[float]) -> int:
        """Returns how many of the drafted proposals are verified.

        `confidence` has, for each proposal, the calibrated probability that it is accepted, given that those before it
        are. Whether proposal i is admitted may depend on `confidence[:i + 1]` only.
        """
        return len(confidence)

    def observe(self, cycle: Cycle) -> None:  # noqa: B027 - not every policy learns
        """Learns from a cycle that has ended; plain cycles are reported, too."""

    @property
    def rest(self) -> int:
        """The number of cycles after a choice of 0 that are plain without asking, since an estimate takes time, too."""
        return 0

    @property
    def trying(self) -> bool:
        """Whether the chosen cycle is not expected to pay, and is there to learn something."""
        return False
