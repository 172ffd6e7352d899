"""What a generation may be asked for, beside its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypedDict

from ds4py.errors import RequestError
from ds4py.generation.stopping import StopStrings
from ds4py.grammar import Constraint
from ds4py.sampling.policy import Sampling
from ds4py.speculative import (
    AcceptanceRule,
    Choice,
    Drafter,
    DrafterInfo,
    DraftLengthPolicy,
    PromptLookupDrafter,
    as_draft_length,
    choose,
)
from ds4py.speculative.loop import check_rule


class GenerationOptions(TypedDict, total=False):
    """The keyword arguments of `Session.generate` that requests hand on to it, which are described there."""

    max_tokens: int | None
    sampling: Sampling | None
    stop: Sequence[str]
    draft: Choice | Drafter
    draft_length: int | str | DraftLengthPolicy
    accept: AcceptanceRule
    draft_vocab: int | None
    logprobs: int | None
    constraint: Constraint | None


def check_options(options: Mapping[str, Any], drafter: DrafterInfo | None, vocab: int) -> None:
    """Raises what `Session.generate` would, before anything runs: TypeError for a name that there is not, RequestError.

    `drafter` is the engine's, `vocab` the size of its vocabulary.
    """
    if unknown := sorted(options.keys() - GenerationOptions.__annotations__.keys()):
        raise TypeError(
            f"unknown options {', '.join(unknown)}; there are {', '.join(GenerationOptions.__annotations__)}"
        )
    check_limit(options.get("max_tokens"))
    check_sampling(options.get("sampling"))
    check_logprobs(options.get("logprobs"), vocab)
    StopStrings(options.get("stop", ()))
    check_rule(options.get("accept", "token"))
    as_draft_length(options.get("draft_length", "auto"))
    choose(options.get("draft", "auto"), drafter, PromptLookupDrafter(), options.get("draft_vocab"))


def check_limit(max_tokens: int | None) -> None:
    """Raises RequestError for a number of tokens that is none."""
    if max_tokens is not None and not (whole(max_tokens) and max_tokens >= 0):
        raise RequestError(f"max_tokens is {max_tokens!r}, wanted a whole number, 0 or more, or None")


def check_sampling(sampling: object) -> None:
    """Raises RequestError for what is no policy, such as a dict of its fields."""
    if sampling is not None and not isinstance(sampling, Sampling):
        raise RequestError(f"sampling is {sampling!r}, wanted a ds4py.Sampling, or None")


def check_logprobs(top: int | None, vocab: int) -> None:
    """Raises RequestError for a number of likeliest tokens that there cannot be."""
    if top is not None and not (whole(top) and 0 <= top <= vocab):
        raise RequestError(f"logprobs is {top!r}, wanted 0 to the vocabulary of {vocab}, or None")


def whole(value: object) -> bool:
    """Whether it is a whole number; Python takes True for one."""
    return isinstance(value, Integral) and not isinstance(value, bool)
