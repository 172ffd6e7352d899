"""The answer of POST /v1/chat/completions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ds4py.chat.events import Content, Event, Reasoning, ToolCallArguments, ToolCallStart
from ds4py.json_types import Json
from ds4py.server.errors import ApiError, openai_body
from ds4py.server.openai.logprobs import entries
from ds4py.server.openai.messages import tool_call
from ds4py.server.response_writer import ResponseWriter, StreamEvent, new_id

if TYPE_CHECKING:
    from ds4py import Tokenizer
    from ds4py.generation import ChatPiece, ChatStream

DONE = StreamEvent("[DONE]")


class ChatWriter(ResponseWriter):
    """Writes one chat completion."""

    def __init__(self, model: str, tokenizer: Tokenizer, *, usage: bool, logprobs: bool) -> None:
        self._head = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": model}
        self._tokenizer = tokenizer
        self._with_usage = usage
        self._with_logprobs = logprobs
        self._pending: list[Json] = []  # log-probabilities whose text has not come yet
        self._logprobs: list[Json] = []
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[Json] = []
        self._finish: str | None = None
        self._usage: Json = {}

    def begin(self) -> list[StreamEvent]:
        """Returns a chunk with the role."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """Returns a chunk for each event of the piece."""
        if piece.logprobs:
            self._pending += entries(self._tokenizer, piece.logprobs)
        deltas = [self._delta(part) for part in piece.events]
        return [self._chunk(delta) for delta in deltas if delta]

    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """Returns the finish reason, the usage if it was asked for, and `[DONE]`."""
        self._finish = stream.finish_reason
        self._usage = usage(stream)
        last = [self._chunk({}, self._finish)]
        if self._with_usage:
            chunk = {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage}
            last.append(StreamEvent(chunk))
        return [*last, DONE]

    def failed(self, error: ApiError) -> list[StreamEvent]:
        """Returns the error in the form that the official client raises."""
        return [StreamEvent(openai_body(error))]

    def body(self) -> Json:
        """Returns the whole completion."""
        message: Json = {"role": "assistant", "content": "".join(self._content) or (None if self._calls else "")}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = self._calls
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self._finish,
            "logprobs": self._shown(self._logprobs),
        }
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage}

    def _delta(self, part: Event) -> Json:
        if isinstance(part, Reasoning):
            self._reasoning.append(part.text)
            return {"reasoning_content": part.text}
        if isinstance(part, Content):
            self._content.append(part.text)
            return {"content": part.text}
        if isinstance(part, ToolCallStart):
            call = tool_call(new_id("call_"), part.name, "")
            self._calls.append(call)
            return {"tool_calls": [{"index": part.index, **call, "function": {"name": part.name, "arguments": ""}}]}
        if isinstance(part, ToolCallArguments):
            self._calls[part.index]["function"]["arguments"] += part.text
            return {"tool_calls": [{"index": part.index, "function": {"arguments": part.text}}]}
        return {}

    def _chunk(self, delta: Json, finish: str | None = None) -> StreamEvent:
        new, self._pending = self._pending, []
        self._logprobs += new
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": self._shown(new) if new else None}
        return StreamEvent({**self._head, "object": "chat.completion.chunk", "choices": [choice]})

    def _shown(self, found: list[Json]) -> Json | None:
        return {"content": found, "refusal": None} if self._with_logprobs else None


def usage(stream: ChatStream) -> Json:
    """Returns the token counts, in the form of both kinds of completions."""
    used = stream.usage
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": used.prompt_tokens + used.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_tokens},
    }
