"""The expected tokens and the time of a cycle, by draft length (docs/dspark.md sections 5.1, 5.3 and 5.6).

Here `survival` is a_1, a_2, ...: the probability that proposal i is accepted, given that those before it are. Times are
in seconds, and `verify[k]` is V(k), the time of a verify of draft length k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ds4py.errors import RequestError


def prefix_survival(survival: Iterable[float]) -> list[float]:
    """Returns S_1, S_2, ...: the probabilities that the first i proposals are all accepted (D54)."""
    found, product = [], 1.0
    for each in survival:
        product *= each
        found.append(product)
    return found


def expected_tokens(survival: Iterable[float]) -> list[float]:
    """Returns E(0), E(1), ...: the expected tokens of a cycle, 1 + S_1 + ... + S_k, by draft length k (D54)."""
    found = [1.0]
    for each in prefix_survival(survival):
        found.append(found[-1] + each)
    return found


def best_draft_length(survival: Sequence[float], verify: Sequence[float], draft: float) -> tuple[int, float]:
    """Returns the draft length k of most tokens a second, E(k) / (draft + verify[k]), and that rate (D57).

    Ties go to the smaller k. Draft lengths beyond `verify` or beyond `survival` do not exist.
    """
    best, rate = 0, 0.0
    for k, (tokens, seconds) in enumerate(zip(expected_tokens(survival), verify, strict=False)):
        if tokens / (draft + seconds) > rate:
            best, rate = k, tokens / (draft + seconds)
    return best, rate


def admitted_proposals(
    confidence: Sequence[float], survival: Sequence[float], verify: Sequence[float], rate: float, limit: int
) -> int:
    """Returns how many proposals of a drafted block to verify, from the left (D60).

    Proposal k joins where some draft length j >= k gains more tokens than its time is worth at `rate` tokens a second:
    S_k + ... + S_j > rate * (verify[j] - verify[k - 1]). Up to k, S is the product of this block's `confidence`; behind
    k it goes on with `survival`, the estimates from earlier cycles. So whether k joins does not depend on the
    proposals from k on, and sampled text stays exact (docs/dspark.md section 3.7).
    """
    product = 1.0
    for k in range(limit):
        product *= confidence[k]
        tokens = ahead = product
        gain = tokens - rate * (verify[k + 1] - verify[k])
        for j in range(k + 1, limit):
            if gain > 0:
                break
            ahead *= survival[j]
            tokens += ahead
            gain = tokens - rate * (verify[j + 1] - verify[k])
        if gain <= 0:
            return k
    return limit


def break_even(verify: Sequence[float], draft: float, plain: float) -> list[float | None]:
    """Returns, for each draft length k >= 1, the survival a at which speculation is as fast as plain decoding (D62).

    The survival is the same at every position: 1 + a + ... + a^k = (draft + verify[k]) / plain. It is None where even
    a = 1 does not reach this.
    """
    return [_root(k, (draft + seconds) / plain) for k, seconds in enumerate(verify) if k]


def _root(k: int, wanted: float) -> float | None:
    if wanted > k + 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if expected_tokens([middle] * k)[-1] < wanted else (low, middle)
    return high


def monotone(verify: Iterable[float]) -> list[float]:
    """Returns the curve with no draft length cheaper than a smaller one, which only noise would say (D56)."""
    found: list[float] = []
    for seconds in verify:
        found.append(max(seconds, found[-1]) if found else seconds)
    return found


def check_times(verify: Sequence[float], draft: float, plain: float) -> None:
    """Raises RequestError unless these can be the times of verifies, of a draft and of a plain step.

    `verify` needs one value or more. Its values and `plain` are finite and above 0, and `draft` is finite and not below
    0.
    """
    if not verify:
        raise RequestError("a verify curve needs the time of at least draft length 0, found none")
    for name, seconds in [*((f"verify[{k}]", each) for k, each in enumerate(verify)), ("plain", plain)]:
        if not math.isfinite(seconds) or seconds <= 0:
            raise RequestError(f"{name} is {seconds} seconds, wanted a time above 0")
    if not math.isfinite(draft) or draft < 0:
        raise RequestError(f"draft is {draft} seconds, wanted 0 or more")
