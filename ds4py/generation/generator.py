"""From cycles to pieces of text: where a generation ends, and what it leaves in the state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ds4py.errors import RequestError
from ds4py.generation.output import OutputProcessor
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.generation.stopping import StopStrings
from ds4py.speculative import Loop

if TYPE_CHECKING:
    from ds4py.runtime.session import Session


def pieces(session: Session, loop: Loop, stops: StopStrings, max_tokens: int | None, stats: Stats) -> Iterator[Piece]:
    """Runs cycles until the text ends. What a piece shows is in the state, or is the anchor, before it is given out."""
    start = session.length
    room = max(0, session.context - start)
    text = OutputProcessor(session.tokenizer, stops, room if max_tokens is None else min(max_tokens, room))
    piece = Piece("", ())
    at = start, session.rewinds
    while piece.finish_reason is None:
        with session.exclusive:
            if (session.length, session.rewinds) != at:
                raise RequestError(
                    f"the session went on elsewhere since this generation's last piece (there were {at[0]} tokens, now "
                    f"{session.length}): end one generation before the session is used for another"
                )
            started = time.perf_counter()
            tokens = loop.cycle(text.remaining) if text.remaining else []
            piece = text.push(tokens, loop.complete)
            keep(session, tokens, at[0], start + text.kept)
            at = start + text.kept, session.rewinds
            stats.generated_tokens += len(piece.tokens)
            stats.generate_seconds += time.perf_counter() - started
        if loop.logprobs is not None:
            piece = piece._replace(logprobs=loop.logprobs[: len(piece.tokens)])
        yield piece


def keep(session: Session, tokens: Sequence[int], begin: int, end: int) -> None:
    """Keeps a cycle's tokens, from position `begin` on, but for those at `end` and beyond, where the text has ended."""
    if not tokens:
        return
    anchored = session.anchor is not None
    if end == begin + len(tokens):
        if anchored:
            session.commit(len(tokens) - 1, tokens[-1])
        else:
            session.anchor = tokens[-1]
    elif anchored and end >= begin:
        session.commit(end - begin, None)
    else:
        session.rewind(end)
