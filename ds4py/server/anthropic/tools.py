"""Tools of Anthropic's messages, and the choices among them."""

from __future__ import annotations

from typing import Literal

from ds4py.server.anthropic.content import CacheControl
from ds4py.server.fields import Fields, JsonObject, Text


class MessagesTool(Fields):
    """A tool that the caller defines; the server has none of its own."""

    name: Text
    description: str | None = None
    input_schema: JsonObject
    type: Literal["custom"] | None = None
    cache_control: CacheControl | None = None
    strict: Literal[False] | None = None
    defer_loading: Literal[False] | None = None
    eager_input_streaming: bool | None = None  # arguments come when a call is whole, which both values allow


class AutoChoice(Fields):
    """The model decides whether to call tools."""

    type: Literal["auto"]
    disable_parallel_tool_use: Literal[False] | None = None


class AnyChoice(Fields):
    """The model calls at least one tool."""

    type: Literal["any"]
    disable_parallel_tool_use: bool | None = None


class OneChoice(Fields):
    """The model calls the named tool."""

    type: Literal["tool"]
    name: Text
    disable_parallel_tool_use: bool | None = None


class NoChoice(Fields):
    """The model calls no tool."""

    type: Literal["none"]
