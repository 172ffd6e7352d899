"""Events of an answer that is taken apart: reasoning, content and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ds4py.chat.messages import Message, ToolCall


@dataclass(frozen=True)
class Reasoning:
    """A part of the model's reasoning."""

    text: str


@dataclass(frozen=True)
class Content:
    """A part of the answer's content."""

    text: str


@dataclass(frozen=True)
class ToolCallStart:
    """The beginning of a tool call. `index` counts the calls of an answer from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class ToolCallArguments:
    """A part of the JSON object of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True)
class ToolCallEnd:
    """The end of a tool call."""

    index: int


Event = Reasoning | Content | ToolCallStart | ToolCallArguments | ToolCallEnd


def message_of(events: Iterable[Event]) -> Message:
    """Returns the assistant's message that the events of a whole answer make up."""
    parts = list(events)
    arguments: dict[int, list[str]] = {each.index: [] for each in parts if isinstance(each, ToolCallStart)}
    for each in parts:
        if isinstance(each, ToolCallArguments):
            arguments[each.index].append(each.text)
    return Message(
        "assistant",
        "".join(each.text for each in parts if isinstance(each, Content)),
        reasoning_content="".join(each.text for each in parts if isinstance(each, Reasoning)) or None,
        tool_calls=tuple(
            ToolCall(each.name, "".join(arguments[each.index])) for each in parts if isinstance(each, ToolCallStart)
        ),
    )
