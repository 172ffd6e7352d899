"""The answer of POST /v1/responses."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from ds4py.chat.events import Content, Event, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart
from ds4py.chat.markers import END_THINK
from ds4py.json_types import Json
from ds4py.server.errors import ApiError
from ds4py.server.openai.logprobs import entries
from ds4py.server.response_writer import ResponseWriter, StreamEvent, new_id

if TYPE_CHECKING:
    from ds4py import Tokenizer
    from ds4py.generation import ChatPiece, ChatStream
    from ds4py.server.openai.responses import ResponseRequest

TEXT_NAMES = {"message": "output_text", "reasoning": "reasoning_text"}
"""The kind of text by the kind of item."""


class ResponseItemWriter(ResponseWriter):
    """Writes one response, item by item."""

    def __init__(self, model: str, tokenizer: Tokenizer, request: ResponseRequest) -> None:
        self._tokenizer = tokenizer
        self._response = new_response(model, request)
        self._open: Json | None = None  # the item that is being written
        self._pending: list[Json] = []
        self._thinking = request.thinks
        self._reasoning_tokens = 0  # by whole steps: one that ends the thinking does not count
        self._sequence = 0

    def begin(self) -> list[StreamEvent]:
        """Returns the events with the empty response."""
        return [self._event(f"response.{state}", response=dict(self._response)) for state in ("created", "in_progress")]

    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """Returns the piece's events as deltas of items."""
        if piece.logprobs:
            self._pending += self._said(entries(self._tokenizer, piece.logprobs))
        result = [event for part in piece.events for event in self._part(part)]
        if self._open is not None and self._open["type"] == "reasoning":
            self._reasoning_tokens += len(piece.tokens)
        return result

    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """Returns the whole response."""
        status = "incomplete" if stream.finish_reason == "length" else "completed"
        result = self._close(status)
        self._response["status"] = status
        if status == "incomplete":
            self._response["incomplete_details"] = {"reason": "max_output_tokens"}
        else:
            self._response["completed_at"] = int(time.time())
        self._response["usage"] = usage(stream, self._reasoning_tokens)
        return [*result, self._event(f"response.{status}", response=self._response)]

    def failed(self, error: ApiError) -> list[StreamEvent]:
        """Returns the event of a response that failed."""
        self._response["status"] = "failed"
        self._response["error"] = {"code": "server_error", "message": error.detail}
        return [self._event("response.failed", response=self._response)]

    def body(self) -> Json:
        """Returns the whole response."""
        return self._response

    def _said(self, found: list[Json]) -> list[Json]:
        """Returns the log-probabilities of the answer's tokens, without those of the reasoning before it."""
        if not self._thinking:
            return found
        end = next((at for at, each in enumerate(found) if each["token"] == END_THINK), None)
        self._thinking = end is None
        return [] if end is None else found[end + 1 :]

    def _part(self, part: Event) -> list[StreamEvent]:
        if isinstance(part, Reasoning):
            return self._text("reasoning", part.text)
        if isinstance(part, Content):
            return self._text("message", part.text)
        if isinstance(part, ToolCallStart):
            return self._close() + self._begin(
                {
                    "type": "function_call",
                    "id": new_id("fc_"),
                    "call_id": new_id("call_"),
                    "name": part.name,
                    "arguments": "",
                }
            )
        if isinstance(part, ToolCallArguments):
            assert self._open is not None
            self._open["arguments"] += part.text
            return [self._of_item("response.function_call_arguments.delta", delta=part.text)]
        assert isinstance(part, ToolCallEnd)
        return self._close()

    def _text(self, kind: str, text: str) -> list[StreamEvent]:
        """Adds text to the open item if it is of this kind, else to a new one."""
        result: list[StreamEvent] = []
        if self._open is None or self._open["type"] != kind:
            result = self._close() + self._begin(new_item(kind)) + self._begin_text(kind)
        part = self._text_part()
        part["text"] += text
        delta: Json = {"content_index": 0, "delta": text}
        if kind == "message":
            new, self._pending = self._pending, []
            part["logprobs"] += new
            delta["logprobs"] = new
        return [*result, self._of_item(f"response.{TEXT_NAMES[kind]}.delta", **delta)]

    def _text_part(self) -> Json:
        assert self._open is not None
        part: Json = self._open["content"][0]
        return part

    def _begin(self, item: Json) -> list[StreamEvent]:
        item["status"] = "in_progress"
        self._open = item
        self._response["output"].append(item)
        return [self._event("response.output_item.added", output_index=self._index, item=copied(item))]

    def _begin_text(self, kind: str) -> list[StreamEvent]:
        assert self._open is not None
        part: Json = {"type": TEXT_NAMES[kind], "text": ""}
        if kind == "message":
            part |= {"annotations": [], "logprobs": []}
        self._open["content"].append(part)
        return [self._of_item("response.content_part.added", content_index=0, part=dict(part))]

    def _close(self, status: str = "completed") -> list[StreamEvent]:
        item = self._open
        if item is None:
            return []
        result = []
        if item["type"] == "function_call":
            result.append(self._of_item("response.function_call_arguments.done", arguments=item["arguments"]))
        else:
            part = self._text_part()
            logprobs = {"logprobs": part["logprobs"]} if item["type"] == "message" else {}
            name = f"response.{TEXT_NAMES[item['type']]}.done"
            result.append(self._of_item(name, content_index=0, text=part["text"], **logprobs))
            result.append(self._of_item("response.content_part.done", content_index=0, part=part))
        item["status"] = status
        result.append(self._event("response.output_item.done", output_index=self._index, item=copied(item)))
        self._open = None
        return result

    @property
    def _index(self) -> int:
        return len(self._response["output"]) - 1

    def _of_item(self, name: str, **data: Any) -> StreamEvent:
        assert self._open is not None
        return self._event(name, item_id=self._open["id"], output_index=self._index, **data)

    def _event(self, name: str, **data: Any) -> StreamEvent:
        self._sequence += 1
        return StreamEvent({"type": name, "sequence_number": self._sequence - 1, **data}, name)


def new_item(kind: str) -> Json:
    """Returns an empty item of text: a message or a reasoning."""
    if kind == "message":
        return {"type": "message", "id": new_id("msg_"), "role": "assistant", "content": []}
    return {"type": "reasoning", "id": new_id("rs_"), "summary": [], "content": []}


def copied(item: Json) -> Json:
    """Returns a copy of the item, which later text does not change."""
    return {**item, "content": list(item["content"])} if "content" in item else dict(item)


def new_response(model: str, request: ResponseRequest) -> Json:
    """Returns an empty response that repeats the request's options."""
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        "usage": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": request.reasoning.effort if request.reasoning else None, "summary": None},
        "store": False,
        "temperature": 1.0 if request.temperature is None else request.temperature,
        "text": written(request.text) or {"format": {"type": "text"}},
        "tool_choice": written(request.tool_choice) or "auto",
        "tools": [written(tool) for tool in request.tools or ()],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": 1.0 if request.top_p is None else request.top_p,
        "truncation": "disabled",
        "user": request.user,
    }


def written(value: Any) -> Any:
    """Returns a field of the request as it was sent."""
    return value.model_dump(by_alias=True, exclude_unset=True) if hasattr(value, "model_dump") else value


def usage(stream: ChatStream, reasoning_tokens: int) -> Json:
    """Returns the token counts."""
    used = stream.usage
    return {
        "input_tokens": used.prompt_tokens,
        "input_tokens_details": {"cached_tokens": used.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": used.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": used.prompt_tokens + used.completion_tokens,
    }
