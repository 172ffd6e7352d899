"""Pearson's test of counts against the law that they should follow."""

from __future__ import annotations

from collections import Counter

Law = dict[tuple[int, ...], float]
"""The probability of every text."""


def chi_square(counts: Counter[tuple[int, ...]], law: Law) -> tuple[float, int]:
    """Returns statistic and degrees of freedom; cells expected less than eight times are taken together."""
    total = sum(counts.values())
    common = [text for text in law if law[text] * total >= 8]
    found = [counts[text] for text in common] + [total - sum(counts[text] for text in common)]
    wanted = [law[text] * total for text in common] + [total - sum(law[text] for text in common) * total]
    cells = [(f, w) for f, w in zip(found, wanted, strict=True) if w > 1e-9]
    return sum((f - w) ** 2 / w for f, w in cells), len(cells) - 1


def bound(freedom: int) -> float:
    """Returns what chi-square exceeds once in a thousand times (Wilson and Hilferty's approximation)."""
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + 3.09 * spread**0.5) ** 3)
