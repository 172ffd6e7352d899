"""Tools, and which of them may be called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ds4py.json_types import Json
from ds4py.server.errors import refused
from ds4py.server.fields import Fields, JsonObject, Text
from ds4py.server.generation_request import ForcedToolCall


class Function(Fields):
    """A function's name, what it does, and the JSON schema of its arguments."""

    name: Text
    description: str | None = None
    parameters: JsonObject | None = None
    strict: Literal[False] | None = None


class ChatTool(Fields):
    """A tool that the caller defines; the server has none of its own."""

    type: Literal["function"]
    function: Function


class NamedFunction(Fields):
    """The name of a function."""

    name: Text


class ChatToolChoice(Fields):
    """The choice of one tool that has to be called."""

    type: Literal["function"]
    function: NamedFunction


def declared(name: str, description: str | None, parameters: Json | None) -> Json:
    """Returns a tool in the form that `Engine.chat` takes, without the fields that are None."""
    function: Json = {"name": name}
    if description is not None:
        function["description"] = description
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


def forced(choice: str | None, name: str | None, parallel: bool | None, tools: Sequence[Json]) -> ForcedToolCall | None:
    """Returns the calls that a tool choice forces, or None. `name` is the chosen tool if `choice` names one.

    Raises ApiError for a choice that cannot be kept.
    """
    names = [tool["function"]["name"] for tool in tools]
    if choice not in (None, "none") and not tools:
        raise refused("tool_choice", "there are no tools to choose from")
    if name is not None and name not in names:
        raise refused("tool_choice", f"there is no tool {name!r}, but {', '.join(map(repr, names))}")
    if choice in (None, "none", "auto"):
        if parallel is False and tools and choice != "none":
            raise refused(
                "parallel_tool_calls", "false is not supported unless tool_choice forces a call", "unsupported_value"
            )
        return None
    return ForcedToolCall(name, parallel is not False)


def check_format(form: Json | None, tools: Sequence[Json] | None) -> None:
    """Raises ApiError if a request has both a response format and tools."""
    if form is not None and tools:
        raise refused("tools", "they are not supported together with a form of the answer", "unsupported_value")
