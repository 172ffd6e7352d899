"""Two evaluations beside each other: how far numbers differ from one training run to another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ds4py.errors import RequestError
from tiny.evaluation.results import Acceptance, Evaluation


@dataclass(frozen=True)
class Difference:
    """Tokens per cycle of one proposer, temperature and domain in both.

    Attributes:
        relative: (second - first) / first.
        error: the standard error of `relative`, for independent evaluations.
    """

    proposer: str
    temperature: float
    domain: str
    first: float
    second: float
    relative: float
    error: float


@dataclass(frozen=True)
class Comparison:
    """All differences, in the order of the evaluations."""

    differences: tuple[Difference, ...]

    @property
    def largest(self) -> Difference:
        """The one that is furthest from none."""
        return max(self.differences, key=lambda each: abs(each.relative))


def compare(first: Evaluation, second: Evaluation, proposer: str = "dspark") -> Comparison:
    """The differences of one proposer's tokens per cycle.

    Raises RequestError where the evaluations were set up differently or have nothing of this proposer.
    """
    if first.setup != second.setup:
        raise RequestError(
            f"the evaluations differ in {first.setup} and {second.setup}: run both with the same numbers"
        )
    pairs = [
        (a, b) for a, b in zip(first.acceptance, second.acceptance, strict=True) if a.proposer == b.proposer == proposer
    ]
    if not pairs:
        names = sorted({each.proposer for each in first.acceptance})
        raise RequestError(f"the evaluations have no proposer {proposer!r}, wanted one of {', '.join(names)}")
    return Comparison(tuple(difference(a, b) for a, b in pairs))


def difference(first: Acceptance, second: Acceptance) -> Difference:
    """Of two results of one kind."""
    a, b = first.per_cycle, second.per_cycle
    ratio = b.value / a.value
    error = ratio * math.hypot(a.error / a.value, b.error / b.value)
    return Difference(first.proposer, first.temperature, first.domain, a.value, b.value, ratio - 1, error)
