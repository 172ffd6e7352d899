"""What a width brings and costs: the arithmetic of speculation (spec: dspark.md, sections 5.1, 5.3 and 5.6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ds4py.errors import RequestError


def survival(conditional: Iterable[float]) -> list[float]:
    """S_1, S_2, ...: P(proposals 1 to i are all accepted), from P(i accepted | those before it are)."""
    found, product = [], 1.0
    for each in conditional:
        product *= each
        found.append(product)
    return found


def emitted(conditional: Iterable[float]) -> list[float]:
    """E(0), E(1), ...: the expected tokens of a cycle by width, 1 + S_1 + ... + S_k."""
    found = [1.0]
    for each in survival(conditional):
        found.append(found[-1] + each)
    return found


def best_width(conditional: Sequence[float], verify: Sequence[float], draft: float) -> tuple[int, float]:
    """The width k of most tokens a second, E(k) / (draft + verify[k]), and that rate; the smallest k where equal.

    `verify` has the seconds of a verify by width from 0 on; widths beyond it or beyond `conditional` do not exist.
    """
    best, rate = 0, 0.0
    for k, (tokens, seconds) in enumerate(zip(emitted(conditional), verify, strict=False)):
        if tokens / (draft + seconds) > rate:
            best, rate = k, tokens / (draft + seconds)
    return best, rate


def worthwhile(
    confidence: Sequence[float], later: Sequence[float], verify: Sequence[float], rate: float, most: int
) -> int:
    """How many proposals to verify, from the left, of a block that has been drafted.

    Proposal k joins where some width from k on gains more tokens than its time is worth at `rate` (tokens a second):
    S_k + ... + S_j > rate * (verify[j] - verify[k - 1]). S up to k is of this block's `confidence`, beyond k it goes on
    by `later`, what positions have been worth before. So whether k joins does not depend on the proposals from k on,
    and sampled output stays exact (spec: dspark.md, section 3.7).
    """
    product = 1.0
    for k in range(most):
        product *= confidence[k]
        tokens = ahead = product
        gain = tokens - rate * (verify[k + 1] - verify[k])
        for j in range(k + 1, most):
            if gain > 0:
                break
            ahead *= later[j]
            tokens += ahead
            gain = tokens - rate * (verify[j + 1] - verify[k])
        if gain <= 0:
            return k
    return most


def break_even(verify: Sequence[float], draft: float, plain: float) -> list[float | None]:
    """By width from 1 on: the survival a, alike at every position, at which speculation is as fast as plain decoding.

    1 + a + ... + a^k = (draft + verify[k]) / plain; None where even a = 1 does not reach it.
    """
    return [_root(k, (draft + seconds) / plain) for k, seconds in enumerate(verify) if k]


def _root(k: int, wanted: float) -> float | None:
    if wanted > k + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if emitted([middle] * k)[-1] < wanted else (low, middle)
    return high


def monotone(verify: Iterable[float]) -> list[float]:
    """A curve in which no width is cheaper than a smaller one: noise must not make more rows look like fewer."""
    found: list[float] = []
    for seconds in verify:
        found.append(max(seconds, found[-1]) if found else seconds)
    return found


def checked(verify: Sequence[float], draft: float, plain: float) -> None:
    """Raises RequestError unless these are the times of widths 0, 1, ..., of a draft and of a plain step."""
    if not verify:
        raise RequestError("a verify curve needs the time of at least width 0, found none")
    for name, seconds in [*((f"verify[{k}]", each) for k, each in enumerate(verify)), ("plain", plain)]:
        if not math.isfinite(seconds) or seconds <= 0:
            raise RequestError(f"{name} is {seconds} seconds, wanted a time above 0")
    if not math.isfinite(draft) or draft < 0:
        raise RequestError(f"draft is {draft} seconds, wanted 0 or more")
