"""The answer to one request: its events, its message and the tokens it took."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from ds4py.chat import Content, Event, Message, message_of
from ds4py.generation.piece import Piece
from ds4py.generation.stats import Stats
from ds4py.prefix_cache.protocols import Ids
from ds4py.sampling import TokenLogprobs


class Reply(Protocol):
    """Turns the text of an answer into events that do not depend on how the text is cut into pieces."""

    def push(self, text: str) -> list[Event]:
        """Returns the events that this text completes."""

    def finish(self) -> list[Event]:
        """Returns the remaining events, at the end of the answer."""


class PlainReply:
    """Turns all text into content: the answer to a raw prompt has no reasoning and no tool calls."""

    def push(self, text: str) -> list[Event]:
        """Returns the text as one event; none for an empty text."""
        return [Content(text)] if text else []

    def finish(self) -> list[Event]:
        """Returns no events, since no text is held back."""
        return []


@dataclass(frozen=True)
class ChatPiece:
    """One step of an answer.

    Attributes:
        events: the text, reasoning and tool calls that are complete now; may be empty.
        tokens: the ids that this step generated.
        logprobs: log-probabilities, one entry for each token; None if they were not requested.
        finish_reason: None until the last piece; then "stop", "length" or "tool_calls".
    """

    events: tuple[Event, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprobs, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True)
class Usage:
    """Counts of a request's tokens.

    Attributes:
        prompt_tokens: tokens of the prompt.
        cached_tokens: prompt tokens that were not evaluated, because a session already held them.
        completion_tokens: tokens of the answer.
    """

    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0


class StreamedAnswer:
    """The state of one answer while it is generated.

    Attributes:
        ids: the prompt, int32 [n].
        usage: counts of tokens so far.
        finish_reason: None until the last piece; then "stop", "length" or "tool_calls".
        stop_string: the stop string that ended the answer; None where none did.
        message: the whole answer; None until the end.
        stats: counts and times of the generation.
    """

    def __init__(self, ids: Ids, reply: Reply) -> None:
        self.ids = ids
        self.usage = Usage(prompt_tokens=len(ids))
        self.finish_reason: str | None = None
        self.stop_string: str | None = None
        self.message: Message | None = None
        self.stats = Stats()
        self._reply = reply
        self._events: list[Event] = []

    def add(self, piece: Piece) -> ChatPiece:
        """Turns a piece of text into events; the last piece completes the answer."""
        events = self._reply.push(piece.text)
        if piece.finish_reason:
            events += self._reply.finish()
        self._events += events
        self.usage = replace(self.usage, completion_tokens=self.usage.completion_tokens + len(piece.tokens))
        if piece.finish_reason:
            self.stop_string = piece.stop_string
            self.message = message_of(self._events)
            called = piece.finish_reason == "stop" and self.message.tool_calls
            self.finish_reason = "tool_calls" if called else piece.finish_reason
        return ChatPiece(tuple(events), piece.tokens, piece.logprobs, self.finish_reason)
