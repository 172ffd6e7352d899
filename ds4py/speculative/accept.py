"""Acceptance on the host: which of a draft's proposals are accepted, and the token after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.sampling import AnySampling, native_sampler

__all__ = ["Proposals", "accept"]

NO_TOKENS = np.empty(0, np.int32)


class Proposals(Protocol):
    """The part of a draft that acceptance reads; `Draft` has it."""

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The proposals, int32 [k]."""

    @property
    def q_probs(self) -> npt.NDArray[np.float32]:
        """The distributions that the proposals were drawn from, after the request's policy, float32 [k, candidates]."""

    @property
    def q_ids(self) -> npt.NDArray[np.int32] | None:
        """The token id of each column of `q_probs`, int32 [k, candidates], distinct in a row.

        None where the columns are the whole vocabulary.
        """


def accept(
    logits: npt.NDArray[np.float32],
    draft: Proposals,
    sampling: AnySampling,
    rng: _native.Rng,
    *,
    history: Sequence[int] | npt.NDArray[np.int32] = (),
    rule: str = "token",
) -> tuple[int, int]:
    """Accepts the first proposals by the target's logits; emitted tokens follow the target's distribution exactly.

    Args:
        logits: float32 [k + 1, vocab], the rows of a verify. Row 0 is what follows the anchor, row i what follows
            proposal i. Of a longer draft the first k proposals are decided.
        draft: the proposals and their q.
        sampling: the policy that p is formed with, and that q was formed with. A native sampler is used as it is; a
            `Sampling` is converted at every call.
        rng: the generator of the request; greedy policies draw nothing from it.
        history: the tokens up to the anchor, the anchor included, for the penalties. A row also sees the proposals
            before it.
        rule: "token" decides one by one (D31, D32), "block" decides jointly and accepts at least as many on average
            (D43 to D47), "match" draws from the target and compares (D36).

    Returns:
        The number n of accepted proposals, and the token after them: the recovered token where n < k, the bonus where
        n = k.

    Raises:
        RequestError: for another rule, shapes that do not fit, ids outside the vocabulary, or a row without a token.
        BackendError: when a logit is NaN or +inf.
    """
    sampler = native_sampler(sampling)
    # Only penalties read the history, which may be as long as the context.
    seen = np.asarray(history, dtype=np.int32) if len(history) and sampler.policy.penalises else NO_TOKENS
    tokens, q, ids, k = draft.tokens, draft.q_probs, draft.q_ids, len(logits) - 1
    if len(tokens) > k:
        tokens, q, ids = tokens[:k], q[:k], None if ids is None else ids[:k]
    return _native.accept(rule, sampler, logits, tokens, q, ids, seen, rng)
