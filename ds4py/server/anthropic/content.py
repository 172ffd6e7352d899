"""Turns and content blocks of Anthropic's messages, and how they become messages of `Engine.chat`."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Discriminator

from ds4py.json_types import Json
from ds4py.server.fields import Fields, JsonObject, Some, Text
from ds4py.server.openai.messages import assistant, tool_call, tool_result


class CacheControl(Fields):
    """A hint to cache a prompt up to here. It has no effect, because whole prompts are cached anyway."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Fields):
    """A block of text."""

    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None
    citations: None = None


class ThinkingBlock(Fields):
    """The reasoning of an earlier turn; the signature is not checked."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class ToolUseBlock(Fields):
    """A tool call of the model."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: JsonObject
    cache_control: CacheControl | None = None
    caller: None = None
    toolset_name: None = None


class ToolResultBlock(Fields):
    """The result of a tool call."""

    type: Literal["tool_result"]
    tool_use_id: Text
    content: str | Some[TextBlock] | None = None
    is_error: bool | None = None
    """Begins the result with `Error: `, since the prompt layout has no other place for it."""
    cache_control: CacheControl | None = None
    toolset_name: None = None

    def plain(self) -> Json:
        """Returns the message in the form that `Engine.chat` takes."""
        return tool_result(self.tool_use_id, ("Error: " if self.is_error else "") + joined(self.content))


class UserTurn(Fields):
    """A user's turn: text and results of tool calls."""

    role: Literal["user"]
    content: str | Some[Annotated[TextBlock | ToolResultBlock, Discriminator("type")]]

    def plain(self) -> list[Json]:
        """Returns one message per block, in the form that `Engine.chat` takes."""
        if isinstance(self.content, str):
            return [{"role": "user", "content": self.content}]
        return [
            block.plain() if isinstance(block, ToolResultBlock) else {"role": "user", "content": block.text}
            for block in self.content
        ]


class AssistantTurn(Fields):
    """An earlier answer of the model."""

    role: Literal["assistant"]
    content: str | Some[Annotated[TextBlock | ThinkingBlock | ToolUseBlock, Discriminator("type")]]

    def plain(self) -> list[Json]:
        """Returns the message in the form that `Engine.chat` takes."""
        if isinstance(self.content, str):
            return [assistant(self.content, None, [])]
        text = [block.text for block in self.content if isinstance(block, TextBlock)]
        thinking = [block.thinking for block in self.content if isinstance(block, ThinkingBlock)]
        calls = [
            tool_call(block.id, block.name, json.dumps(block.input, ensure_ascii=False))
            for block in self.content
            if isinstance(block, ToolUseBlock)
        ]
        return [assistant("".join(text), "".join(thinking) or None, calls)]


def joined(content: str | list[TextBlock] | None) -> str:
    """Returns a content's text; its blocks are joined by line ends."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content)
