"""Compares two evaluations, to see how far numbers differ from one training run to another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ds4py.errors import RequestError
from tiny.evaluation.results import Acceptance, Evaluation


@dataclass(frozen=True)
class Difference:
    """The tokens per cycle of one proposer, temperature and domain in both evaluations.

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
        """The difference that is furthest from 0."""
        return max(self.differences, key=lambda each: abs(each.relative))


def compare(first: Evaluation, second: Evaluation, proposer: str = "dspark") -> Comparison:
    """Compares the tokens per cycle of one proposer.

    Raises RequestError if the setups differ, or if an evaluation has nothing of this proposer.
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
    """Compares two results of one kind."""
    a, b = first.per_cycle, second.per_cycle
    ratio = b.value / a.value
    error = ratio * math.hypot(a.error / a.value, b.error / b.value)
    return Difference(first.proposer, first.temperature, first.domain, a.value, b.value, ratio - 1, error)
