"""The settings of a generation request that drafting and acceptance read."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py import _native
from ds4py.grammar.base import Constraint, Guide
from ds4py.sampling import Sampling
from ds4py.speculative.draft import Draft


@dataclass(frozen=True)
class DraftRequest:
    """The settings of a generation request that drafting and acceptance read; all of its cycles share them.

    Attributes:
        sampler: the sampling policy that both p and q are formed with.
        rng: the generator of all random numbers of the request.
        arg_max: whether the policy takes the likeliest token of the logits as they are.
        penalises: whether the policy depends on the tokens before a row.
        temperature: the temperature of a policy that has nothing else; 0 where it takes the likeliest token, None where
            the policy has more.
        guide: the grammar that the text is held to; None where every token is allowed.
        logprobs: how many of the likeliest tokens are reported beside each token; None where nothing is asked for.
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
        """Makes a request with a generator of its own, seeded by `sampling`, or freshly where it has no seed."""
        policy = sampling.policy()
        arg_max = policy.greedy and not policy.penalises and not sampling.logit_bias
        rng = _native.Rng(sampling.resolved_seed())
        temperature = policy.temperature if policy.temperature_only else None
        guide = Guide(constraint.start()) if constraint else None
        sampler = _native.Sampler(policy)
        return cls(sampler, rng, arg_max, policy.penalises, 0.0 if arg_max else temperature, guide, logprobs)

    @property
    def needs_logits(self) -> bool:
        """Whether the verify's logits have to be read; where not, a device with the kernels accepts by itself."""
        return self.temperature is None or self.guide is not None or self.logprobs is not None

    def fits_device(self, draft: Draft) -> bool:
        """Returns whether a device can accept the draft's proposals without a q from the host.

        It can where the request is greedy, where q is 1 at each proposal, and where q is device-resident and has the
        request's temperature (docs/dspark.md section 3.9).
        """
        if self.arg_max or draft.is_point_mass:
            return True
        return draft.device_q is not None and draft.device_q.temperature == self.temperature
