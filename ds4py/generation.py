"""From cycles to pieces of text: where a generation ends, and what it leaves in the state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ds4py.errors import RequestError
from ds4py.logprobs import TokenLogprobs
from ds4py.speculative import Loop
from ds4py.stats import Stats
from ds4py.stopping import StopStrings
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from ds4py.session import Session


@dataclass(frozen=True)
class Piece:
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


class Text:
    """Takes the tokens of a generation, several at a time, until a stop token, a stop string or `limit` tokens."""

    def __init__(self, tokenizer: Tokenizer, stops: StopStrings, limit: int) -> None:
        self._tokenizer = tokenizer
        self._decoder = tokenizer.detokenizer()
        self._stops = stops
        self._limit = limit
        self._tokens: list[int] = []
        self._shown = ""
        self.kept = 0
        """Tokens so far that belong in the state: those whose text may be shown."""

    @property
    def remaining(self) -> int:
        """Tokens that may still come."""
        return self._limit - len(self._tokens)

    def push(self, tokens: Sequence[int], last: bool = False) -> Piece:
        """The piece of the next tokens; what follows an ending among them is dropped. At most `remaining`.

        `last` ends the text with them.
        """
        text = ""
        for i, token in enumerate(tokens):
            if token in self._tokenizer.stop_ids:
                return Piece(text + self._flush(), tuple(tokens[:i]), "stop")
            text += self._show(token)
            if self._stops.found:
                self.kept = self._kept_before_stop()
                return Piece(text, tuple(tokens[: i + 1]), "stop", stop_string=self._stops.found)
            self.kept = len(self._tokens)
        if last:
            return Piece(text + self._flush(), tuple(tokens), "stop")
        if self.remaining:
            return Piece(text, tuple(tokens))
        return Piece(text + self._flush(), tuple(tokens), "length")

    def _show(self, token: int) -> str:
        self._tokens.append(token)
        text = self._stops.push(self._decoder.push([token]))
        self._shown += text
        return text

    def _flush(self) -> str:
        return self._stops.push(self._decoder.flush()) + self._stops.flush()

    def _kept_before_stop(self) -> int:
        """Tokens whose text was shown before the stop string that the last one completed."""
        kept = len(self._tokens) - 1
        while kept and not self._shown.startswith(self._tokenizer.decode(self._tokens[:kept])):
            kept -= 1
        return kept


def pieces(session: Session, loop: Loop, stops: StopStrings, max_tokens: int | None, stats: Stats) -> Iterator[Piece]:
    """Runs cycles until the text ends. What a piece shows is in the state, or is the anchor, before it is given out."""
    start = session.position + (session.anchor is not None)
    room = max(0, session.context - start)
    text = Text(session.tokenizer, stops, room if max_tokens is None else min(max_tokens, room))
    piece = Piece("", ())
    at = where(session)
    while piece.finish_reason is None:
        with session.exclusive:
            if where(session) != at:
                raise RequestError(
                    f"the session went on elsewhere since this generation's last piece (there were {at[0]} tokens, now "
                    f"{where(session)[0]}): end one generation before the session is used for another"
                )
            started = time.perf_counter()
            tokens = loop.cycle(text.remaining) if text.remaining else []
            piece = text.push(tokens, loop.complete)
            keep(session, tokens, start + text.kept)
            stats.generated_tokens += len(piece.tokens)
            stats.generate_seconds += time.perf_counter() - started
            at = where(session)
        if loop.logprobs is not None:
            piece = replace(piece, logprobs=loop.logprobs[: len(piece.tokens)])
        yield piece


def where(session: Session) -> tuple[int, int]:
    """How long the text is, the anchor included, and whether it is still the same one."""
    return session.position + (session.anchor is not None), session.rewinds


def keep(session: Session, tokens: Sequence[int], end: int) -> None:
    """Keeps a cycle's tokens, but for those at position `end` and beyond, where the text has ended."""
    if not tokens:
        return
    position, anchored = session.position, session.anchor is not None
    if end == position + anchored + len(tokens):
        if anchored:
            session.commit(len(tokens) - 1, tokens[-1])
        else:
            session.anchor = tokens[-1]
    elif anchored and end > position:
        session.commit(end - position - 1, None)
    else:
        session.rewind(end)
