"""Tools in a conversation: those that are declared, and the calls and results in its history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ds4py.chat.dsml import DECLARING, check_name, read_arguments, to_json
from ds4py.chat.markers import DSML
from ds4py.chat.messages import Message, ToolCall
from ds4py.chat.segments import Segment, marked
from ds4py.chat.template import ChatTemplate
from ds4py.errors import RequestError

WANTED: Final = '{"type": "function", "function": {"name": ..., "description": ..., "parameters": ...}}'

Tools = Sequence[Mapping[str, object]]


def read_tools(tools: Tools) -> list[Mapping[str, object]]:
    """Returns the functions of a list of tools. Raises RequestError if one is malformed or a name occurs twice."""
    functions = [read_tool(f"tools[{place}]", tool) for place, tool in enumerate(tools)]
    names = [function["name"] for function in functions]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise RequestError(f"tools: {twice!r} comes more than once; give each function a name of its own")
    return functions


def read_tool(where: str, tool: object) -> Mapping[str, object]:
    """Returns the function of one tool. Raises RequestError that begins with `where`."""
    function = tool.get("function") if isinstance(tool, Mapping) and tool.get("type") == "function" else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise RequestError(f"{where}: wanted {WANTED}")
    check_name(where, name)
    return function


def declaration(tools: Tools, template: ChatTemplate | None) -> Iterator[Segment]:
    """The text that declares tools. Its words are the template's, or where that has none those of `dsml.DECLARING`."""
    before, after = (template.tools() if template else None) or DECLARING
    yield from marked(before)
    yield Segment("\n".join(to_json(function) for function in read_tools(tools)), False)
    yield from marked(after)


def calls_block(calls: Sequence[ToolCall]) -> Iterator[Segment]:
    """Yields the segments of the block of tool calls, which follows the assistant's text."""
    yield Segment("\n\n", False)
    yield from tag("<", "tool_calls>\n")
    for call in calls:
        arguments = read_arguments(call.name, call.arguments)
        yield from tag("<", f'invoke name="{call.name}">\n' + ("" if arguments else "\n"))
        for name, value in arguments.items():
            yield from tag("<", f'parameter name="{name}" string="{to_json(isinstance(value, str))}">')
            yield Segment(value if isinstance(value, str) else to_json(value), False)
            yield from tag("</", "parameter>\n")
        yield from tag("</", "invoke>\n")
    yield from tag("</", "tool_calls>")


def tag(before: str, after: str) -> Iterator[Segment]:
    """Yields the segments of a tag, with the DSML marker between `before` and `after`."""
    yield from (Segment(before, False), Segment(DSML, True), Segment(after, False))


def in_call_order(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages with the results of each user turn in the order of the calls before them.

    Results of calls that nobody has made count as the first call's, as in the official encoder.
    """
    ordered = list(messages)
    order: dict[str | None, int] = {}
    turn: list[int] = []  # places of results
    for place, message in enumerate([*messages, Message("assistant", "")]):
        if message.role == "tool":
            turn.append(place)
        elif message.role == "assistant":
            results = sorted((messages[at] for at in turn), key=lambda each: order.get(each.tool_call_id, 0))
            for at, result in zip(turn, results, strict=True):
                ordered[at] = result
            turn = []
            if message.tool_calls:
                order = {call.id: number for number, call in enumerate(message.tool_calls) if call.id}
    return ordered
