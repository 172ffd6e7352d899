"""Log-probabilities as OpenAI's APIs write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Tokenizer
    from ds4py.sampling.logprobs import TokenLogprobs

LOWEST = -9999.0
"""The log-probability written in place of minus infinity, which JSON lacks."""


def token_text(tokenizer: Tokenizer, token: int) -> str:
    """Returns a token's text; bytes that are no whole character become U+FFFD."""
    return tokenizer.token_bytes(token).decode("utf-8", "replace")


def entry(tokenizer: Tokenizer, token: int, logprob: float) -> Json:
    """Returns a token's text, bytes and log-probability."""
    return {
        "token": token_text(tokenizer, token),
        "bytes": list(tokenizer.token_bytes(token)),
        "logprob": max(logprob, LOWEST),
    }


def entries(tokenizer: Tokenizer, found: Iterable[TokenLogprobs]) -> list[Json]:
    """Returns an entry for each chosen token, with its likeliest alternatives."""
    return [
        entry(tokenizer, each.token, each.logprob)
        | {"top_logprobs": [entry(tokenizer, token, logprob) for token, logprob in each.top]}
        for each in found
    ]
