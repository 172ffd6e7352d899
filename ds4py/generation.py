"""From cycles to pieces of text: where a generation ends, and what it leaves in the state."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ds4py.errors import RequestError
from ds4py.logprobs import TokenLogprobs
from ds4py.speculative import Loop
from ds4py.stats import Stats
from ds4py.stopping import StopStrings
from ds4py.tokenizer import Tokenizer

if TYPE_CHECKING:
    from ds4py.session import Session


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


class Text:
    """Takes the tokens of a generation, several at a time, until a stop token, a stop string or `limit` tokens."""

    def __init__(self, tokenizer: Tokenizer, stops: StopStrings, limit: int) -> None:
        self._tokenizer = tokenizer
        self._stop_ids = tokenizer.stop_ids
        self._decoder = tokenizer.detokenizer()
        self._stops = stops
        self._limit = limit
        self._tokens: list[int] = []
        self._shown: list[str] = []
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
        may_stop = self._stops.sought or not self._stop_ids.isdisjoint(tokens)
        for i, token in enumerate(tokens if may_stop else ()):
            if token in self._stop_ids:
                return Piece(text + self._flush(), tuple(tokens[:i]), "stop")
            text += self._show((token,))
            if self._stops.found:
                self.kept = self._kept_before_stop()
                return Piece(text, tuple(tokens[: i + 1]), "stop", stop_string=self._stops.found)
            self.kept = len(self._tokens)
        if not may_stop:
            text = self._show(tokens)
            self.kept = len(self._tokens)
        if last:
            return Piece(text + self._flush(), tuple(tokens), "stop")
        if self.remaining:
            return Piece(text, tuple(tokens))
        return Piece(text + self._flush(), tuple(tokens), "length")

    def _show(self, tokens: Sequence[int]) -> str:
        self._tokens += tokens
        text = self._stops.push(self._decoder.push(tokens))
        self._shown.append(text)
        return text

    def _flush(self) -> str:
        return self._stops.push(self._decoder.flush()) + self._stops.flush()

    def _kept_before_stop(self) -> int:
        """Tokens whose text was shown before the stop string that the last one completed."""
        kept, shown = len(self._tokens) - 1, "".join(self._shown)
        while kept and not shown.startswith(self._tokenizer.decode(self._tokens[:kept])):
            kept -= 1
        return kept


def pieces(session: Session, loop: Loop, stops: StopStrings, max_tokens: int | None, stats: Stats) -> Iterator[Piece]:
    """Runs cycles until the text ends. What a piece shows is in the state, or is the anchor, before it is given out."""
    start = session.length
    room = max(0, session.context - start)
    text = Text(session.tokenizer, stops, room if max_tokens is None else min(max_tokens, room))
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
