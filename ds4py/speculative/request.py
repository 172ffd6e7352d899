"""What drafting and accepting need of a generation request."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py import _native
from ds4py.grammar.base import Constraint, Guide
from ds4py.sampling import Sampling
from ds4py.speculative.draft import Draft


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

    def judged_without_q(self, draft: Draft) -> bool:
        """Whether a device can judge the proposals: nothing is drawn, q is 1 at each, or it is there and fits."""
        if self.arg_max or draft.is_point_mass:
            return True
        return draft.held is not None and draft.held.temperature == self.temperature
