"""Measures held-out loss through the runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ds4py import Session
from ds4py.cli.perplexity import negative_log_likelihood
from ds4py.tokenizer import Tokenizer
from tiny.evaluation.heldout import Stream
from tiny.evaluation.results import Loss


def characters(tokenizer: Tokenizer) -> npt.NDArray[np.int64]:
    """Returns the characters that each token begins, int64 [vocab].

    Their sum is exact even if a text is cut inside a character. Control tokens have none.
    """
    return np.array(
        [0 if tokenizer.is_special(i) else begun(tokenizer.token_bytes(i)) for i in range(tokenizer.vocab_size)]
    )


def begun(data: bytes) -> int:
    """Counts the bytes that begin a character of UTF-8: all but 10xxxxxx."""
    return sum(byte & 0xC0 != 0x80 for byte in data)


def score(session: Session, window: Stream) -> tuple[float, int]:
    """Returns the nats, and the number of tokens that were the likeliest, of the window's tokens after its first."""
    session.rewind(0)
    logits = session.evaluate(window[:-1])
    nats = negative_log_likelihood(logits, window[1:].tolist())
    return nats, int((logits.argmax(axis=1) == window[1:]).sum())


def held_out_loss(
    session: Session, domain: str, windows: Sequence[Stream], lengths: npt.NDArray[np.int64], step: Callable[[], None]
) -> Loss:
    """Returns the loss over windows of one domain.

    `lengths` are the characters of each token. `step` is called after each window.
    """
    nats, right, tokens, length = 0.0, 0, 0, 0
    for window in windows:
        window_nats, window_right = score(session, window)
        nats, right = nats + window_nats, right + window_right
        tokens, length = tokens + len(window) - 1, length + int(lengths[window[1:]].sum())
        step()
    return Loss(
        domain=domain,
        tokens=tokens,
        characters=length,
        nats_per_token=nats / tokens,
        bits_per_character=nats / math.log(2) / length if length else None,
        top1=right / tokens,
    )
