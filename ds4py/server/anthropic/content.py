"""Turns and content blocks of Anthropic's messages, and how they become messages of `Engine.chat`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Discriminator

from ds4py.server.fields import Fields, JsonObject, Some, Text
from ds4py.server.openai.messages import assistant, tool_call, tool_result

Json = dict[str, Any]


class CacheControl(Fields):
    """A hint where to keep a prompt; here all of it is kept without one."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Fields):
    """Text."""

    type: Literal["text"]
    text: str
    cache_control: CacheControl | None = None
    citations: None = None


class ThinkingBlock(Fields):
    """What the model thought in an earlier turn; the signature is not looked at."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class ToolUseBlock(Fields):
    """A call that the model made."""

    type: Literal["tool_use"]
    id: Text
    name: Text
    input: JsonObject
    cache_control: CacheControl | None = None
    caller: None = None
    toolset_name: None = None


class ToolResultBlock(Fields):
    """What a call gave."""

    type: Literal["tool_result"]
    tool_use_id: Text
    content: str | Some[TextBlock] | None = None
    is_error: bool | None = None
    """Begins the result with `Error: `, since the prompt layout has no other place for it."""
    cache_control: CacheControl | None = None
    toolset_name: None = None

    def plain(self) -> Json:
        """As `Engine.chat` takes it."""
        return tool_result(self.tool_use_id, ("Error: " if self.is_error else "") + joined(self.content))


class UserTurn(Fields):
    """What the user says, and what calls gave."""

    role: Literal["user"]
    content: str | Some[Annotated[TextBlock | ToolResultBlock, Discriminator("type")]]

    def plain(self) -> list[Json]:
        """As `Engine.chat` takes it: a message for each block."""
        if isinstance(self.content, str):
            return [{"role": "user", "content": self.content}]
        return [
            block.plain() if isinstance(block, ToolResultBlock) else {"role": "user", "content": block.text}
            for block in self.content
        ]


class AssistantTurn(Fields):
    """What the model has answered."""

    role: Literal["assistant"]
    content: str | Some[Annotated[TextBlock | ThinkingBlock | ToolUseBlock, Discriminator("type")]]

    def plain(self) -> list[Json]:
        """As `Engine.chat` takes it."""
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
    """A content's text; blocks stand on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content)
