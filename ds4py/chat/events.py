"""Events of an answer that is taken apart: reasoning, content and tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ds4py.chat.messages import Message, ToolCall


@dataclass(frozen=True)
class Reasoning:
    """A part of what the model thinks."""

    text: str


@dataclass(frozen=True)
class Content:
    """A part of what it says."""

    text: str


@dataclass(frozen=True)
class ToolCallStart:
    """A call of a tool begins. Calls are counted from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class ToolCallArguments:
    """A part of the JSON object of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True)
class ToolCallEnd:
    """A call is whole."""

    index: int


Event = Reasoning | Content | ToolCallStart | ToolCallArguments | ToolCallEnd


def message_of(events: Iterable[Event]) -> Message:
    """The assistant's message that the events of a whole answer make."""
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
