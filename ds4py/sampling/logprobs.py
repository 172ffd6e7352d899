"""What the target made of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ds4py import _native


class TokenLogprobs(NamedTuple):
    """Of one token: natural logarithms of the target's softmax at temperature 1, before any policy.

    Attributes:
        token: the id.
        logprob: of the token.
        top: the likeliest ids with theirs, in descending order; the lowest ids first among equals.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def logprobs(logits: npt.NDArray[np.float32], tokens: Sequence[int], top: int) -> tuple[TokenLogprobs, ...]:
    """Of each token by its row of `logits` [at least len(tokens), vocab], with the `top` likeliest.

    Raises RequestError for what does not fit, BackendError where a logit is no number.
    """
    found = _native.logprobs(logits, np.asarray(tokens, np.int32), top)
    return tuple(TokenLogprobs(*each) for each in found)
