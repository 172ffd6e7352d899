"""The messages of a chat completion."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator

from ds4py.json_types import Json
from ds4py.server.fields import Absent, Fields, Some, Text, Texts, joined


class SystemMessage(Fields):
    """A system message, or one of the developer."""

    role: Literal["system", "developer"]
    content: Texts

    def plain(self) -> Json:
        """Returns the message in the form that `Engine.chat` takes."""
        return {"role": self.role, "content": joined(self.content)}


class UserMessage(Fields):
    """A user's message."""

    role: Literal["user"]
    content: Texts

    def plain(self) -> Json:
        """Returns the message in the form that `Engine.chat` takes."""
        return {"role": self.role, "content": joined(self.content)}


class CalledFunction(Fields):
    """A function and the JSON text of its arguments."""

    name: Text
    arguments: str


class ChatToolCall(Fields):
    """A tool call of the model."""

    id: Text
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None  # in messages that were put together from a stream


class AssistantMessage(Fields):
    """An earlier answer of the model; `reasoning_content` is its reasoning."""

    role: Literal["assistant"]
    content: Texts | None = None
    reasoning_content: str | None = None
    tool_calls: Some[ChatToolCall] | None = None
    refusal: None = None
    annotations: Absent = None
    audio: None = None
    function_call: None = None

    def plain(self) -> Json:
        """Returns the message in the form that `Engine.chat` takes."""
        calls = [call.model_dump(exclude={"index"}) for call in self.tool_calls or ()]
        return assistant(joined(self.content), self.reasoning_content, calls)


class ToolMessage(Fields):
    """The result of a tool call."""

    role: Literal["tool"]
    content: Texts
    tool_call_id: Text

    def plain(self) -> Json:
        """Returns the message in the form that `Engine.chat` takes."""
        return tool_result(self.tool_call_id, joined(self.content))


ChatMessage = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Discriminator("role")]


def assistant(content: str, reasoning: str | None, calls: list[Json]) -> Json:
    """Returns an assistant's message in the form that `Engine.chat` takes."""
    message: Json = {"role": "assistant", "content": content}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def tool_call(call_id: str, name: str, arguments: str) -> Json:
    """Returns a tool call in the form that `Engine.chat` takes."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_result(call_id: str, content: str) -> Json:
    """Returns a tool's result in the form that `Engine.chat` takes."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}
