"""Log-probabilities as OpenAI's APIs write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Tokenizer
    from ds4py.sampling.logprobs import TokenLogprobs

LOWEST = -9999.0
"""Instead of minus infinity, which JSON does not have."""


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """A token's text; where it is a part of a character, the replacement character."""
    return tokenizer.token_bytes(token).decode("utf-8", "replace")


def entry(tokenizer: Tokenizer, token: int, logprob: float) -> Json:
    """One token."""
    return {
        "token": token_text(tokenizer, token),
        "bytes": list(tokenizer.token_bytes(token)),
        "logprob": max(logprob, LOWEST),
    }


def entries(tokenizer: Tokenizer, found: Iterable[TokenLogprobs]) -> list[Json]:
    """Chosen tokens, each with its likeliest alternatives."""
    return [
        entry(tokenizer, each.token, each.logprob)
        | {"top_logprobs": [entry(tokenizer, token, logprob) for token, logprob in each.top]}
        for each in found
    ]
