"""Which of a draft's proposals stand, and the token after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.sampling import AnySampling, native_sampler

__all__ = ["Proposals", "accept"]


NONE = np.empty(0, np.int32)


class Proposals(Protocol):
    """What acceptance wants to know of a draft."""

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The proposals, [k]."""

    @property
    def q_probs(self) -> npt.NDArray[np.float32]:
        """The distributions they were drawn from, after the request's policy, [k, width]."""

    @property
    def q_ids(self) -> npt.NDArray[np.int32] | None:
        """The tokens that `q_probs` belong to, [k, width], distinct in a row; None where they are the vocabulary."""


def accept(
    logits: npt.NDArray[np.float32],
    draft: Proposals,
    sampling: AnySampling,
    rng: _native.Rng,
    *,
    history: Sequence[int] | npt.NDArray[np.int32] = (),
    rule: str = "token",
) -> tuple[int, int]:
    """Judges proposals by the target's logits; what is emitted follows the target's distribution exactly.

    Args:
        logits: float32 [k + 1, vocab] of a verify; row i is what follows proposal i, row 0 what follows the anchor. Of
            a longer draft the first k proposals are judged.
        draft: the proposals and their q.
        sampling: the policy that q was made with, too; a native sampler spares making one a call.
        rng: greedy policies draw nothing from it.
        history: the tokens up to and including the anchor, for the penalties; a row also sees the proposals before it.
        rule: "token" judges one by one, "block" jointly and accepts no fewer on average, "match" draws from the
            target and compares.

    Returns:
        The number n of accepted proposals, and the token after them: the correction (n < k) or the bonus (n = k).

    Raises:
        RequestError: for another rule, shapes that do not fit, ids outside the vocabulary, or a row without a token.
        BackendError: when a logit is NaN or +inf.
    """
    sampler = native_sampler(sampling)
    # Only penalties look at it, and it may be as long as the context.
    seen = np.asarray(history, dtype=np.int32) if len(history) and sampler.policy.penalises else NONE
    tokens, q, ids, k = draft.tokens, draft.q_probs, draft.q_ids, len(logits) - 1
    if len(tokens) > k:
        tokens, q, ids = tokens[:k], q[:k], None if ids is None else ids[:k]
    return _native.accept(rule, sampler, logits, tokens, q, ids, seen, rng)
