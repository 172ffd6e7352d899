"""One step of a generation."""

from __future__ import annotations

from typing import NamedTuple

from ds4py.sampling import TokenLogprobs


class Piece(NamedTuple):
    """What one step of a generation adds: one token, or several where proposals were accepted.

    Attributes:
        text: text that is complete now; may be empty while a character or a stop string is pending.
        tokens: the ids behind this step.
        finish_reason: None until the last piece; then "stop" (end of text or a stop string) or "length".
        logprobs: one for each token; None where they were not asked for.
        stop_string: the one that ended the text, in the last piece; None where none did.
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str | None = None
    logprobs: tuple[TokenLogprobs, ...] | None = None
    stop_string: str | None = None
