"""The answer of POST /v1/messages."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from ds4py.chat.events import Content, Event, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart
from ds4py.json_types import Json
from ds4py.server.errors import ApiError, anthropic_body
from ds4py.server.response_writer import ResponseWriter, StreamEvent, new_id

if TYPE_CHECKING:
    from ds4py.generation import ChatPiece, ChatStream

STOP_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessageWriter(ResponseWriter):
    """Writes one message, block by block."""

    ping = StreamEvent({"type": "ping"}, "ping")

    def __init__(self, model: str) -> None:
        self._message: Json = {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {},
        }
        self._started = False
        self._open = False

    def begin(self) -> list[StreamEvent]:
        """Returns no events, because the first one has to say how much of the prompt was cached."""
        return []

    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """Returns the piece's events as deltas of content blocks."""
        result = self._start(stream)
        for part in piece.events:
            result += self._part(part)
        return result

    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """Returns the events with the stop reason and the usage."""
        result = self._start(stream) + self._close()
        reason = "stop_sequence" if stream.stop_string else STOP_REASONS[stream.finish_reason or "stop"]
        ending = {"stop_reason": reason, "stop_sequence": stream.stop_string}
        self._message |= ending | {"usage": usage(stream)}
        last = {"type": "message_delta", "delta": ending, "usage": usage(stream)}
        return [*result, named(last), named({"type": "message_stop"})]

    def failed(self, error: ApiError) -> list[StreamEvent]:
        """Returns the error event."""
        return [StreamEvent(anthropic_body(error), "error")]

    def body(self) -> Json:
        """Returns the whole message."""
        return self._message

    def _start(self, stream: ChatStream) -> list[StreamEvent]:
        if self._started:
            return []
        self._started = True
        first = {**self._message, "content": [], "usage": usage(stream) | {"output_tokens": 0}}
        return [named({"type": "message_start", "message": first})]

    def _part(self, part: Event) -> list[StreamEvent]:
        if isinstance(part, Reasoning):
            return [*self._block("thinking", {"thinking": "", "signature": ""}), self._text("thinking", part.text)]
        if isinstance(part, Content):
            return [*self._block("text", {"text": ""}), self._text("text", part.text)]
        if isinstance(part, ToolCallStart):
            block = {"id": new_id("toolu_"), "name": part.name, "input": {}}
            self._arguments = ""
            return self._close() + self._block("tool_use", block)
        if isinstance(part, ToolCallArguments):
            self._arguments += part.text
            return [self._delta({"type": "input_json_delta", "partial_json": part.text})]
        assert isinstance(part, ToolCallEnd)
        self._last["input"] = json.loads(self._arguments, parse_int=number, parse_float=number)
        return self._close()

    @property
    def _last(self) -> Json:
        block: Json = self._message["content"][-1]
        return block

    def _block(self, kind: str, block: Json) -> list[StreamEvent]:
        """Continues the open block if it is of this kind, else begins one."""
        if self._open and self._last["type"] == kind:
            return []
        closed = self._close()
        self._open = True
        self._message["content"].append({"type": kind, **block})
        begun = {"type": "content_block_start", "index": self._index, "content_block": {"type": kind, **block}}
        return [*closed, named(begun)]

    def _text(self, kind: str, text: str) -> StreamEvent:
        self._last[kind] += text
        return self._delta({"type": f"{kind}_delta", kind: text})

    def _delta(self, delta: Json) -> StreamEvent:
        return named({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self) -> list[StreamEvent]:
        if not self._open:
            return []
        self._open = False
        return [named({"type": "content_block_stop", "index": self._index})]

    @property
    def _index(self) -> int:
        return len(self._message["content"]) - 1


def number(text: str) -> int | float | str:
    """Parses a number of a call's arguments; one that overflows a float stays text, because JSON has no infinity."""
    if not math.isfinite(float(text)):
        return text
    return int(text) if text.removeprefix("-").isdigit() else float(text)


def named(data: Json) -> StreamEvent:
    """Returns an event whose name is the type in its data."""
    return StreamEvent(data, data["type"])


def usage(stream: ChatStream) -> Json:
    """Returns the token counts; cached tokens of the prompt are counted apart from the others."""
    used = stream.usage
    return {
        "input_tokens": used.prompt_tokens - used.cached_tokens,
        "cache_read_input_tokens": used.cached_tokens,
        "cache_creation_input_tokens": 0,
        "output_tokens": used.completion_tokens,
    }
