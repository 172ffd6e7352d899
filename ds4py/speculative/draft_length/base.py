"""What a width policy is asked, and when."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ds4py.speculative.costs import Curve
from ds4py.speculative.expected import best_width
from ds4py.speculative.stats import Cycle

MOST = 15
"""Proposals that one verify can hold: the state has slack for 16 rows, and the anchor is the first of them."""


@dataclass(frozen=True)
class Offer:
    """What is known of a cycle's proposals before they are made.

    Attributes:
        expected: P(accepted | those before it are) by position, from the cycles before; as many as there can be.
        curve: what cycles cost at this depth, with this drafter; None while it is being learned.
        confident: whether the drafter says how sure it is of each proposal, so that `Width.admit` is asked.
        unknown: the largest width whose cost has not been measured; None where all are.
        oldest: the width from 1 on whose cost was measured longest ago.
    """

    expected: Sequence[float]
    curve: Curve | None
    confident: bool = False
    unknown: int | None = None
    oldest: int = 0

    @property
    def most(self) -> int:
        """The largest width there can be."""
        return len(self.expected)

    @property
    def settled(self) -> Curve | None:
        """The curve where every width of it has been measured, so that it can decide."""
        return self.curve if self.unknown is None else None

    @cached_property
    def best(self) -> tuple[int, float]:
        """The width of most tokens a second, and that rate; (0, 0.0) without a curve."""
        return best_width(self.expected, self.curve.verify, self.curve.draft) if self.curve else (0, 0.0)


class Width(ABC):
    """Chooses the width of each cycle of a request.

    A choice never depends on the proposals it lets in: verifying a proposal because of what it is would bias sampled
    output (spec: dspark.md, section 3.7). `choose` comes before anything is proposed, and `admit` stops from left to
    right. What a cycle verifies is this, or less where fewer tokens were proposed or may still be emitted.
    """

    def start(self) -> Width:
        """The policy for one request; one that learns gives a fresh one, so that no request inherits another's."""
        return self

    @abstractmethod
    def choose(self, offer: Offer) -> int:
        """The width of the next cycle, at most; 0 is a plain step, for which nothing is drafted."""

    def admit(self, offer: Offer, confidence: Sequence[float]) -> int:
        """How many of the chosen proposals to verify.

        `confidence` is P(accepted | those before it are), float [width]. Whether proposal k is among them may depend on
        confidence[:k + 1] alone.
        """
        return len(confidence)

    def observe(self, cycle: Cycle) -> None:  # noqa: B027 - not every policy learns
        """Learns from a cycle, a plain one as well."""

    @property
    def rest(self) -> int:
        """Cycles after a choice of 0 that are plain without asking again; offers take a moment, too."""
        return 0

    @property
    def trying(self) -> bool:
        """Whether the chosen cycle is not expected to pay, and is there to find something out."""
        return False
