"""Computes statistics of cycles and texts. Positions are counted from the first proposal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ds4py.speculative import Cycle
from tiny.evaluation.results import Bin, Estimate

RESAMPLES = 2000
BINS = 10


class Judged(NamedTuple):
    """Proposals with nothing rejected before them: their confidence, and whether they were accepted."""

    confidence: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]


def conditional(cycles: Sequence[Cycle], width: int) -> tuple[float | None, ...]:
    """Returns P(proposal k accepted | those before it were) for k = 1 to `width`; None where none was judged."""
    judged = [[c.accepted > k for c in cycles if c.width > k and c.accepted >= k] for k in range(width)]
    return tuple(sum(each) / len(each) if each else None for each in judged)


def reach(cycles: Sequence[Cycle], width: int) -> tuple[float, ...]:
    """Returns the share of all cycles that accepted k proposals or more, k = 1 to `width`.

    Tokens per cycle are 1 + their sum.
    """
    return tuple(sum(c.accepted > k for c in cycles) / len(cycles) for k in range(width))


def per_cycle(prompts: Sequence[Sequence[Cycle]], seed: int) -> Estimate:
    """Estimates the tokens emitted a cycle, from the cycles of each prompt.

    The error and the 95 % interval come from resampling prompts instead of cycles, because the cycles of one text are
    alike (the cluster bootstrap; Efron and Tibshirani, "An introduction to the bootstrap", 1993).
    """
    cycles = np.array([len(each) for each in prompts])
    tokens = np.array([len(each) + sum(cycle.accepted for cycle in each) for each in prompts])
    drawn = np.random.default_rng(seed).integers(0, len(prompts), (RESAMPLES, len(prompts)))
    ratios = tokens[drawn].sum(axis=1) / cycles[drawn].sum(axis=1)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return Estimate(float(tokens.sum() / cycles.sum()), float(ratios.std()), float(low), float(high))


def distinct(texts: Iterable[Sequence[int]], size: int = 4) -> float | None:
    """Returns the share of n-grams that are new to their own text, or None if no text has one."""
    grams = [[tuple(text[i : i + size]) for i in range(len(text) - size + 1)] for text in texts]
    total = sum(map(len, grams))
    return sum(len(set(each)) for each in grams) / total if total else None


def judged(cycles: Iterable[Cycle]) -> Judged:
    """Returns the judged proposals of the cycles that have a confidence."""
    found = [
        (c.confidence[k], k < c.accepted) for c in cycles if c.confidence for k in range(min(c.accepted + 1, c.width))
    ]
    confidence, accepted = zip(*found, strict=True) if found else ((), ())
    return Judged(np.array(confidence, np.float64), np.array(accepted, np.bool_))


def bins(proposals: Judged) -> tuple[Bin, ...]:
    """Groups the proposals by confidence in `BINS` equal parts of [0, 1]. Empty parts are left out."""
    part = np.minimum((proposals.confidence * BINS).astype(int), BINS - 1)
    return tuple(
        Bin(
            count=int(inside.sum()),
            confidence=float(proposals.confidence[inside].mean()),
            accepted=float(proposals.accepted[inside].mean()),
        )
        for inside in (part == number for number in np.unique(part))
    )


def calibration_error(parts: Sequence[Bin]) -> float | None:
    """Returns the expected calibration error.

    It is the mean of |confidence - accepted| over the bins, weighted by their counts (Guo et al. 2017).
    """
    total = sum(part.count for part in parts)
    return sum(part.count * abs(part.confidence - part.accepted) for part in parts) / total if total else None


def auc(proposals: Judged) -> float | None:
    """Returns the chance that an accepted proposal has more confidence than a rejected one.

    Ties count half. It is None unless there are both.
    """
    values, which = np.unique(proposals.confidence, return_inverse=True)
    accepted = np.bincount(which[proposals.accepted], minlength=len(values))
    rejected = np.bincount(which[~proposals.accepted], minlength=len(values))
    pairs = int(accepted.sum()) * int(rejected.sum())
    below = np.cumsum(rejected) - rejected
    return float((accepted * (below + 0.5 * rejected)).sum() / pairs) if pairs else None
