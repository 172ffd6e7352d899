"""Proposals, and who makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ds4py import _native
from ds4py.grammar.base import Constraint, Guide

if TYPE_CHECKING:
    from ds4py.runtime.session import Session
    from ds4py.sampling.policy import Sampling

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DeviceQ:
    """q of a draft that is still on the device which drew from it, [k, vocab], until the session's next draft.

    Attributes:
        number: of the draft.
        temperature: of the policy, which has nothing else.
        reader: brings q of a number here; RequestError when it is gone.
    """

    number: int
    temperature: float
    reader: Callable[[int], Floats]

    @cached_property
    def probs(self) -> Floats:
        """All rows; they stay here once they were asked for."""
        return self.reader(self.number)


class Draft:
    """Proposals for what follows the anchor, each with the distribution q that it was drawn from.

    Args:
        tokens: int32 [k].
        q_probs: float32 [k, width], rows that sum to 1. It has to be the truth: acceptance is exact for any q, but only
            for the q that the proposals came from. Or one that is still on a device.
        q_ids: int32 [k, width], the token of each column; None where q_probs is over the whole vocabulary.
        confidence: float32 [k], the drafter's P(accepted | those before it are); None where it has no such head. Widths
            go by it, so that confidence[i] must not depend on tokens[i] or later ones where these are drawn.
    """

    def __init__(
        self, tokens: Ids, q_probs: Floats | DeviceQ, q_ids: Ids | None = None, confidence: Floats | None = None
    ) -> None:
        self.tokens = tokens
        self.q_ids = q_ids
        self.confidence = confidence
        self._q = q_probs

    @classmethod
    def point_mass(cls, tokens: Sequence[int] | Ids, confidence: Floats | None = None) -> Draft:
        """Proposals that were chosen without drawing: q is 1 at each of them."""
        ids = np.asarray(tokens, dtype=np.int32)
        return cls(ids, np.ones((len(ids), 1), np.float32), ids[:, None], confidence)

    @property
    def q_probs(self) -> Floats:
        """As above. RequestError where it was left on the device until the session drafted again."""
        return self._q.probs[: len(self)] if isinstance(self._q, DeviceQ) else self._q

    @property
    def device_q(self) -> DeviceQ | None:
        """q where it was left on the device."""
        return self._q if isinstance(self._q, DeviceQ) else None

    @property
    def is_point_mass(self) -> bool:
        """Whether q is 1 at each proposal."""
        return self.q_ids is not None and self.q_ids.shape[1] == 1

    def __len__(self) -> int:
        return len(self.tokens)

    def first(self, k: int) -> Draft:
        """The first k proposals, fewer where there are fewer."""
        if k >= len(self.tokens):
            return self
        ids, confidence = self.q_ids, self.confidence
        return Draft(
            self.tokens[:k],
            self.device_q or self.q_probs[:k],
            None if ids is None else ids[:k],
            None if confidence is None else confidence[:k],
        )


@dataclass(frozen=True)
class DraftRequest:
    """What drafting and accepting need of a generation request; the same for all of its cycles.

    Attributes:
        sampler: the request's policy, which both p and q are formed with.
        rng: where every draw of the request comes from.
        arg_max: the policy takes the likeliest token of the logits as they are.
        penalises: the policy depends on the tokens before a row.
        temperature: of a policy that has nothing else, 0 where it takes the likeliest token; None where there is more.
        guide: keeps the text within a grammar; None where all is allowed.
        logprobs: how many of the likeliest tokens are to be told beside each; None where nothing is asked for.
    """

    sampler: _native.Sampler
    rng: _native.Rng
    arg_max: bool
    penalises: bool
    temperature: float | None = None
    guide: Guide | None = None
    logprobs: int | None = None

    @classmethod
    def of(cls, sampling: Sampling, logprobs: int | None = None, constraint: Constraint | None = None) -> DraftRequest:
        """A request with a generator of its own, seeded by `sampling` or, where it has no seed, freshly."""
        policy = sampling.policy()
        arg_max = policy.greedy and not policy.penalises and not sampling.logit_bias
        rng = _native.Rng(sampling.resolved_seed())
        temperature = policy.temperature if policy.temperature_only else None
        guide = Guide(constraint.start()) if constraint else None
        sampler = _native.Sampler(policy)
        return cls(sampler, rng, arg_max, policy.penalises, 0.0 if arg_max else temperature, guide, logprobs)

    @property
    def needs_logits(self) -> bool:
        """Whether the target's rows have to be read; where not, a device that has the kernels judges them itself."""
        return self.temperature is None or self.guide is not None or self.logprobs is not None

    def accepted_on_device(self, draft: Draft) -> bool:
        """Whether a device can judge the proposals: nothing is drawn, q is 1 at each, or it is there and fits."""
        if self.arg_max or draft.is_point_mass:
            return True
        return draft.device_q is not None and draft.device_q.temperature == self.temperature


class Drafter(Protocol):
    """Who proposes. A drafter may be kept for many requests and sessions, one thread at a time."""

    name: str
    """For statistics."""

    def propose(self, session: Session, request: DraftRequest, width: int) -> Draft | None:
        """Proposals for what follows `session.anchor`; the first `width` (1 to 15) at most are verified.

        None, or a draft without tokens, makes the cycle a plain step. An exception ends the generation, and leaves the
        session as it was after the last piece.
        """
