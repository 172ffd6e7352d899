"""The options of a generation, and their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, TypedDict

from ds4py.errors import RequestError
from ds4py.generation.stop_strings import StopStrings
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
    """The keyword arguments of `Session.generate`, which describes them, without those of the prompt."""

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
    """Checks options before anything runs, with the errors that `Session.generate` raises.

    Args:
        drafter: the drafter of the engine; None without one.
        vocab: the size of the vocabulary.

    Raises TypeError for an option that does not exist, RequestError for an invalid value.
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
    """Raises RequestError unless `max_tokens` is None or a whole number of at least 0."""
    if max_tokens is not None and not (is_whole_number(max_tokens) and max_tokens >= 0):
        raise RequestError(f"max_tokens is {max_tokens!r}, wanted a whole number, 0 or more, or None")


def check_sampling(sampling: object) -> None:
    """Raises RequestError unless `sampling` is None or a `Sampling`; a dict of its fields is refused."""
    if sampling is not None and not isinstance(sampling, Sampling):
        raise RequestError(f"sampling is {sampling!r}, wanted a ds4py.Sampling, or None")


def check_logprobs(top: int | None, vocab: int) -> None:
    """Raises RequestError unless `top` is None or a whole number from 0 to the size of the vocabulary."""
    if top is not None and not (is_whole_number(top) and 0 <= top <= vocab):
        raise RequestError(f"logprobs is {top!r}, wanted 0 to the vocabulary of {vocab}, or None")


def is_whole_number(value: object) -> bool:
    """Returns whether a value is a whole number. True and False, which Python counts as integers, are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)
