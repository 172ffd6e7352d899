"""The sampling policy of a request, which is checked once and handed to the native sampler."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real

from ds4py import _native
from ds4py.errors import RequestError

_INT32 = range(-(2**31), 2**31)
_SEEDS = range(2**64)
_NUMBERS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
_COUNTS = ("top_k", "penalty_last_n")


@dataclass(frozen=True)
class Sampling:
    """The sampling policy of a request. Its defaults leave the distribution as it is, as the model's makers recommend.

    The steps run in the order logit bias, penalties, temperature, top-k, top-p, min-p. Every step has a value that
    turns it off. Raises RequestError naming the field, what was found and what is wanted.
    """

    #: Divides the logits; 0 (or below 1e-5) is greedy, with the lowest id among equals.
    temperature: float = 1.0
    #: Keeps the k largest logits and what ties with the k-th; 0 is off.
    top_k: int = 0
    #: Keeps the fewest likeliest tokens whose probabilities reach p; 1 is off.
    top_p: float = 1.0
    #: Drops tokens less likely than min_p times the likeliest; 0 is off.
    min_p: float = 0.0
    #: Divides positive and multiplies negative logits of tokens already seen; 1 is off.
    repetition_penalty: float = 1.0
    #: Subtracted once from the logit of every token already seen; 0 is off.
    presence_penalty: float = 0.0
    #: Subtracted from a token's logit once for every time it was seen; 0 is off.
    frequency_penalty: float = 0.0
    #: How many of the latest tokens the penalties look at; -1 is all, 0 none.
    penalty_last_n: int = -1
    #: Added to the logits of single tokens, by id; -inf bans a token.
    logit_bias: Mapping[int, float] | None = field(default=None, hash=False)
    #: Seed of the draws, in [0, 2**64); None takes a fresh one for every request.
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            _require_number(name, getattr(self, name))
        for name in _COUNTS:
            _require_integer(name, getattr(self, name), _INT32)
        if self.seed is not None:
            _require_integer("seed", self.seed, _SEEDS)
        if self.logit_bias is not None:
            # A copy, since a mapping changed later would change the policy in the middle of a request.
            object.__setattr__(self, "logit_bias", _checked_bias(self.logit_bias))
        self.policy()

    @property
    def greedy(self) -> bool:
        """Whether the policy takes the likeliest token without drawing."""
        return self.policy().greedy

    def policy(self) -> _native.SamplingPolicy:
        """Returns the native form, which `_native.Sampler` is made from."""
        return _native.SamplingPolicy(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            penalty_last_n=self.penalty_last_n,
            logit_bias=dict(self.logit_bias or {}),
        )

    def resolved_seed(self) -> int:
        """Returns the seed to use and to report: the given one, or a fresh one of 63 bits at every call."""
        return secrets.randbits(63) if self.seed is None else int(self.seed)


def _require_number(name: str, found: object) -> None:
    if not isinstance(found, Real) or isinstance(found, bool):
        raise RequestError(f"sampling: {name} is {found!r}, wanted a number")


def _require_integer(name: str, found: object, allowed: range) -> None:
    if not isinstance(found, Integral) or isinstance(found, bool) or int(found) not in allowed:
        wanted = f"an integer in [{allowed.start}, {allowed.stop})"
        raise RequestError(f"sampling: {name} is {found!r}, wanted {wanted}")


def _checked_bias(bias: Mapping[int, float]) -> dict[int, float]:
    if not isinstance(bias, Mapping):
        raise RequestError(f"sampling: logit_bias is {bias!r}, wanted a mapping of token id to bias")
    for token, value in bias.items():
        _require_integer("a token of logit_bias", token, _INT32)
        _require_number(f"logit_bias[{token}]", value)
    return {int(token): float(value) for token, value in bias.items()}


AnySampling = Sampling | _native.Sampler
"""A policy, or the native sampler that was made from one, which spares making it again for every call."""


def native_sampler(sampling: AnySampling) -> _native.Sampler:
    """Returns the native sampler of a policy; one that is native already is returned as it is."""
    return sampling if isinstance(sampling, _native.Sampler) else _native.Sampler(sampling.policy())
