"""Log probabilities of tokens under the target model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ds4py import _native


class TokenLogprobs(NamedTuple):
    """Log probabilities at one position: natural logarithms of the softmax at temperature 1, before any policy.

    Attributes:
        token: the id of the token that was emitted there.
        logprob: its log probability.
        top: the likeliest ids with their log probabilities, in descending order; the lowest ids first among equals.
    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()


def logprobs(logits: npt.NDArray[np.float32], tokens: Sequence[int], top: int) -> tuple[TokenLogprobs, ...]:
    """Computes the log probabilities of each token, and of the `top` likeliest ids at its position.

    Args:
        logits: float32 [at least len(tokens), vocab]; row i is the distribution that tokens[i] was drawn from.

    Raises RequestError for shapes that do not fit and ids outside the vocabulary, BackendError where a logit is NaN.
    """
    found = _native.logprobs(logits, np.asarray(tokens, np.int32), top)
    return tuple(TokenLogprobs(*each) for each in found)
