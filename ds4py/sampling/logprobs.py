"""Log probabilities of tokens in the target's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ds4py import _native


class TokenLogprobs(NamedTuple):
    """The log probability of a token: the natural logarithm of the target's softmax at temperature 1, without a policy.

    Attributes:
        token: the token id.
        logprob: the log probability of the token.
        top: the likeliest ids with their log probabilities, in descending order; of equals the lowest id is first.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def logprobs(logits: npt.NDArray[np.float32], tokens: Sequence[int], top: int) -> tuple[TokenLogprobs, ...]:
    """Returns the log probability of each token, token i by row i of `logits`, with the `top` likeliest of the row.

    `logits` is float32 [>= len(tokens), vocab]. Raises RequestError for shapes, ids or a `top` that do not fit, and
    BackendError where a logit is no number.
    """
    found = _native.logprobs(logits, np.asarray(tokens, np.int32), top)
    return tuple(TokenLogprobs(*each) for each in found)
