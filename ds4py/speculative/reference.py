"""The rules of acceptance in float64 NumPy, as their formulas stand: what the native ones are checked against.

A rule takes the target's distributions p [k + 1, vocab] and the drafter's q [k, vocab], both after the request's
policy, the k proposals, and the chances to decide with. It returns how many proposals stand and the token after them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["RULES", "Chances", "Uniforms", "by_block", "by_match", "by_token", "residual"]

Weights = npt.NDArray[np.float64]

#: A residual of no more than this is rounding noise of a rejection that had no greater probability.
NO_MASS = 1e-8


class Chances(Protocol):
    """The random decisions of a rule; other implementations may walk through all of them."""

    def below(self, p: float, q: float) -> bool:
        """True with probability min(1, p / q); never for p = 0."""

    def pick(self, weights: Weights) -> int:
        """An index, with probability weights[index] / sum(weights)."""


class Uniforms:
    """Chances decided by uniforms in [0, 1), taken in the order in which the native rules take theirs."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def below(self, p: float, q: float) -> bool:
        """Strict, so that p = 0 rejects even for a uniform of 0."""
        return self._uniform() * q < p

    def pick(self, weights: Weights) -> int:
        """The inverse of the cumulative weights."""
        cumulative = np.cumsum(weights)
        index = np.searchsorted(cumulative, self._uniform() * cumulative[-1], side="right")
        return int(min(index, np.flatnonzero(weights)[-1]))


def residual(p: Weights, q: Weights, scale: float = 1.0) -> Weights:
    """max(scale p - q, 0) up to a factor, from which the token after a rejection is drawn; p where that is nothing."""
    rest = np.maximum(p - q / scale, 0.0)
    return rest if rest.sum() > NO_MASS else p


def by_token(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """One by one: x stands with probability min(1, p(x) / q(x)) (Leviathan et al. 2023, Chen et al. 2023)."""
    for i, token in enumerate(proposals):
        if not chances.below(p[i][token], q[i][token]):
            return i, chances.pick(residual(p[i], q[i]))
    return len(proposals), chances.pick(p[len(proposals)])


def by_match(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """A token of the target at every row, and the proposals stand while they equal it; q is not looked at."""
    for i, proposal in enumerate(proposals):
        token = chances.pick(p[i])
        if token != proposal:
            return i, token
    return len(proposals), chances.pick(p[len(proposals)])


def by_block(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """The block jointly (Sun et al. 2024, arXiv 2403.10444, algorithm 2): the longest prefix that stands counts."""
    accepted, scale, joint = 0, 1.0, 1.0
    for i, token in enumerate(proposals):
        if i > 0 and chances.below(_threshold(p[i], q[i], joint), 1.0):
            accepted, scale = i, joint
        joint = _extended(joint, p[i][token], q[i][token])
        if joint == 0:
            break
    if proposals and chances.below(joint, 1.0):
        accepted = len(proposals)
    if accepted == len(proposals):
        return accepted, chances.pick(p[accepted])
    return accepted, chances.pick(residual(p[accepted], q[accepted], scale))


def _extended(joint: float, p: float, q: float) -> float:
    """The paper's p_i from p_{i-1}; a q of zero divides to infinity."""
    if p == 0:
        return 0.0
    return min(joint * p / q, 1.0) if q > 0 else 1.0


def _threshold(p: Weights, q: Weights, joint: float) -> float:
    """The paper's h_i; 0/0 is 1, since then the next rows agree and nothing is lost by going on."""
    mass = float(np.maximum(joint * p - q, 0.0).sum())
    whole = mass + (1.0 - joint)
    return mass / whole if whole > 0 else 1.0


#: The rules by the names that `accept` knows.
RULES: dict[str, Callable[[Weights, Weights, Sequence[int], Chances], tuple[int, int]]] = {
    "token": by_token,
    "match": by_match,
    "block": by_block,
}
