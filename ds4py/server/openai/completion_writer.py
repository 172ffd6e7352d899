"""The answer of POST /v1/completions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ds4py.chat.events import Content
from ds4py.json_types import Json
from ds4py.server.errors import ApiError, openai_body
from ds4py.server.openai.chat_writer import DONE, usage
from ds4py.server.openai.logprobs import LOWEST, token_text
from ds4py.server.response_writer import ResponseWriter, StreamEvent, new_id

if TYPE_CHECKING:
    from ds4py import Tokenizer
    from ds4py.generation import ChatPiece, ChatStream

LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


class CompletionWriter(ResponseWriter):
    """Writes one completion."""

    def __init__(self, model: str, tokenizer: Tokenizer, *, usage: bool) -> None:
        self._head = {
            "id": new_id("cmpl-"),
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }
        self._tokenizer = tokenizer
        self._with_usage = usage
        self._text: list[str] = []
        self._logprobs: Json | None = None
        self._offset = 0
        self._finish: str | None = None
        self._usage: Json = {}

    def begin(self) -> list[StreamEvent]:
        """Returns no events."""
        return []

    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """Returns one chunk, or none if the piece has neither text nor tokens."""
        text = "".join(part.text for part in piece.events if isinstance(part, Content))
        new = None if piece.logprobs is None else self._entries(piece)
        self._text.append(text)
        if new is not None:
            self._logprobs = new if self._logprobs is None else {key: self._logprobs[key] + new[key] for key in LISTS}
        return [self._chunk(text, new)] if text or piece.tokens else []

    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """Returns the finish reason, the usage if it was asked for, and `[DONE]`."""
        self._finish = stream.finish_reason
        self._usage = usage(stream)
        last = [self._chunk("", None, self._finish)]
        if self._with_usage:
            last.append(StreamEvent({**self._head, "choices": [], "usage": self._usage}))
        return [*last, DONE]

    def failed(self, error: ApiError) -> list[StreamEvent]:
        """Returns the error in the form that the official client raises."""
        return [StreamEvent(openai_body(error))]

    def body(self) -> Json:
        """Returns the whole completion."""
        choice = choice_of("".join(self._text), self._logprobs, self._finish)
        return {**self._head, "choices": [choice], "usage": self._usage}

    def _chunk(self, text: str, logprobs: Json | None, finish: str | None = None) -> StreamEvent:
        return StreamEvent({**self._head, "choices": [choice_of(text, logprobs, finish)]})

    def _entries(self, piece: ChatPiece) -> Json:
        """Returns the piece's log-probabilities; offsets count characters of the tokens' texts."""
        result: Json = {key: [] for key in LISTS}
        for each in piece.logprobs or ():
            text = token_text(self._tokenizer, each.token)
            result["tokens"].append(text)
            result["token_logprobs"].append(max(each.logprob, LOWEST))
            top = {token_text(self._tokenizer, token): max(logprob, LOWEST) for token, logprob in reversed(each.top)}
            result["top_logprobs"].append(top)
            result["text_offset"].append(self._offset)
            self._offset += len(text)
        return result


def choice_of(text: str, logprobs: Json | None, finish: str | None) -> Json:
    """Returns the completion's only choice."""
    return {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
