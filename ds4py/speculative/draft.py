"""Proposals, and who makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ds4py import _native

if TYPE_CHECKING:
    from ds4py.sampling import Sampling
    from ds4py.session import Session

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Draft:
    """Proposals for what follows the anchor, each with the distribution q that it was drawn from.

    Attributes:
        tokens: int32 [k].
        q_probs: float32 [k, width], rows that sum to 1. It has to be the truth: acceptance is exact for any q, but only
            for the q that the proposals came from.
        q_ids: int32 [k, width], the token of each column; None where q_probs is over the whole vocabulary.
        confidence: float32 [k], the drafter's P(accepted | those before it are); None where it has no such head. Widths
            go by it, so that confidence[i] must not depend on tokens[i] or later ones where these are drawn.
    """

    tokens: Ids
    q_probs: Floats
    q_ids: Ids | None = None
    confidence: Floats | None = None

    @classmethod
    def point_mass(cls, tokens: Sequence[int] | Ids, confidence: Floats | None = None) -> Draft:
        """Proposals that were chosen without drawing: q is 1 at each of them."""
        ids = np.asarray(tokens, dtype=np.int32)
        return cls(ids, np.ones((len(ids), 1), np.float32), ids[:, None], confidence)

    def __len__(self) -> int:
        return len(self.tokens)

    def first(self, k: int) -> Draft:
        """The first k proposals, fewer where there are fewer."""
        ids, confidence = self.q_ids, self.confidence
        return Draft(
            self.tokens[:k],
            self.q_probs[:k],
            None if ids is None else ids[:k],
            None if confidence is None else confidence[:k],
        )


@dataclass(frozen=True)
class Request:
    """What drafting and accepting need of a generation request; the same for all of its cycles.

    Attributes:
        sampler: the request's policy, which both p and q are formed with.
        rng: where every draw of the request comes from.
        arg_max: the policy takes the likeliest token of the logits as they are.
        penalises: the policy depends on the tokens before a row.
    """

    sampler: _native.Sampler
    rng: _native.Rng
    arg_max: bool
    penalises: bool

    @classmethod
    def of(cls, sampling: Sampling) -> Request:
        """A request with a generator of its own, seeded by `sampling` or, where it has no seed, freshly."""
        policy = sampling.policy()
        arg_max = policy.greedy and not policy.penalises and not sampling.logit_bias
        rng = _native.Rng(sampling.resolved_seed())
        return cls(_native.Sampler(policy), rng, arg_max, policy.penalises)


class Drafter(Protocol):
    """Who proposes. A drafter may be kept for many requests and sessions, one thread at a time."""

    name: str
    """For statistics."""

    def propose(self, session: Session, request: Request, width: int) -> Draft | None:
        """Proposals for what follows `session.anchor`; the first `width` (1 to 15) at most are verified.

        None, or a draft without tokens, makes the cycle a plain step. An exception ends the generation, and leaves the
        session as it was after the last piece.
        """
