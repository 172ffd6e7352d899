"""The rules of acceptance in float64 NumPy, in the form of their formulas; tests compare the native rules with them.

A rule takes the target's distributions p, float64 [k + 1, vocab], and the drafter's q, float64 [k, vocab], both after
the request's policy, the k proposals, and the chances to decide with. It returns how many proposals are accepted and
the token after them (docs/dspark.md sections 3.4, 3.8 and 3.10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["RULES", "Chances", "Uniforms", "by_block", "by_match", "by_token", "residual"]

Weights = npt.NDArray[np.float64]

#: A residual whose sum is at most this is rounding noise of a rejection that had no greater probability.
NO_MASS = 1e-8


class Chances(Protocol):
    """The random decisions of a rule. Tests have an implementation that walks through all of them."""

    def below(self, p: float, q: float) -> bool:
        """Returns True with probability min(1, p / q), and never for p = 0."""

    def pick(self, weights: Weights) -> int:
        """Returns an index, with probability weights[index] / sum(weights)."""


class Uniforms:
    """Chances that are decided by uniforms in [0, 1), in the order in which the native rules take theirs."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def below(self, p: float, q: float) -> bool:
        """Compares strictly, so that p = 0 rejects even for a uniform of 0 (D31)."""
        return self._uniform() * q < p

    def pick(self, weights: Weights) -> int:
        """Inverts the cumulative weights."""
        cumulative = np.cumsum(weights)
        index = np.searchsorted(cumulative, self._uniform() * cumulative[-1], side="right")
        return int(min(index, np.flatnonzero(weights)[-1]))


def residual(p: Weights, q: Weights, scale: float = 1.0) -> Weights:
    """Returns max(scale p - q, 0) up to a factor, from which the recovered token is drawn; p where its sum is nothing.

    p and q are float64 [vocab]; the scale is 1 for "token" (D32) and the joint probability for "block" (D47).
    """
    rest = np.maximum(p - q / scale, 0.0)
    return rest if rest.sum() > NO_MASS else p


def by_token(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """Decides one by one: x is accepted with probability min(1, p(x) / q(x)) (D31; Leviathan et al. 2023)."""
    for i, token in enumerate(proposals):
        if not chances.below(p[i][token], q[i][token]):
            return i, chances.pick(residual(p[i], q[i]))
    return len(proposals), chances.pick(p[len(proposals)])


def by_match(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """Draws a token of the target at every row, and accepts proposals while they equal it; q is not used (D36)."""
    for i, proposal in enumerate(proposals):
        token = chances.pick(p[i])
        if token != proposal:
            return i, token
    return len(proposals), chances.pick(p[len(proposals)])


def by_block(p: Weights, q: Weights, proposals: Sequence[int], chances: Chances) -> tuple[int, int]:
    """Decides the block jointly and accepts its longest prefix that passes (D43 to D47; Sun et al. 2024)."""
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
    """Returns J_i from J_{i-1} (D43); a q of zero divides to infinity."""
    if p == 0:
        return 0.0
    return min(joint * p / q, 1.0) if q > 0 else 1.0


def _threshold(p: Weights, q: Weights, joint: float) -> float:
    """Returns h_i (D45); 0/0 is 1, since then the next rows agree and nothing is lost by going on."""
    mass = float(np.maximum(joint * p - q, 0.0).sum())
    whole = mass + (1.0 - joint)
    return mass / whole if whole > 0 else 1.0


#: The rules by the names that `accept` knows.
RULES: dict[str, Callable[[Weights, Weights, Sequence[int], Chances], tuple[int, int]]] = {
    "token": by_token,
    "match": by_match,
    "block": by_block,
}
