"""Tools of Anthropic's messages, and the choices among them."""

from __future__ import annotations

from typing import Literal

from ds4py.server.anthropic.content import CacheControl
from ds4py.server.fields import Fields, JsonObject, Text


class MessagesTool(Fields):
    """A tool of the caller's; there are no others."""

    name: Text
    description: str | None = None
    input_schema: JsonObject
    type: Literal["custom"] | None = None
    cache_control: CacheControl | None = None
    strict: Literal[False] | None = None
    defer_loading: Literal[False] | None = None
    eager_input_streaming: bool | None = None  # arguments come when a call is whole, which both values allow


class AutoChoice(Fields):
    """The model calls tools as it likes."""

    type: Literal["auto"]
    disable_parallel_tool_use: Literal[False] | None = None


class AnyChoice(Fields):
    """It calls one, or several."""

    type: Literal["any"]
    disable_parallel_tool_use: bool | None = None


class OneChoice(Fields):
    """It calls that one."""

    type: Literal["tool"]
    name: Text
    disable_parallel_tool_use: bool | None = None


class NoChoice(Fields):
    """It calls none."""

    type: Literal["none"]
