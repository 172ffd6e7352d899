"""One step of a generation."""

from __future__ import annotations

from typing import NamedTuple

from ds4py.sampling import TokenLogprobs


class Piece(NamedTuple):
    """One step of a generation: one token, or several where proposals were accepted.

    Attributes:
        text: the text that is complete now; empty while a character or a stop string may still be completed.
        tokens: the ids that this step generated.
        finish_reason: None until the last piece; then "stop" (end of text or a stop string) or "length".
        logprobs: one for each token; None where they were not asked for.
        stop_string: the stop string that ended the text, in the last piece; None where none did.
    """

    text: str
    tokens: tuple[int, ...]
    finish_reason: str | None = None
    logprobs: tuple[TokenLogprobs, ...] | None = None
    stop_string: str | None = None
