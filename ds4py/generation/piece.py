"""The type of one step of a generation."""

from __future__ import annotations

from typing import NamedTuple

from ds4py.sampling import TokenLogprobs


class Piece(NamedTuple):
    """One step of a generation: one token, or several where proposals were accepted.

    Attributes:
        text: the text that is complete now; empty while a character or a possible stop string is incomplete.
        tokens: the ids that this step generated.
        finish_reason: None until the last piece; then "stop" (end of text or a stop string) or "length".
        logprobs: log-probabilities, one entry for each token; None if they were not requested.
        stop_string: the stop string that ended the text, in the last piece; None where none did.
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str | None = None
    logprobs: tuple[TokenLogprobs, ...] | None = None
    stop_string: str | None = None
