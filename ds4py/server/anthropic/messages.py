"""POST /v1/messages and /v1/messages/count_tokens: the requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field

from ds4py.server.fields import Fields, JsonObject, PolicyFields, Some, Stops, Text
from ds4py.server.generation_request import ForcedToolCall, GenerationRequest
from ds4py.server.openai.messages import assistant, tool_call, tool_result
from ds4py.server.openai.tools import check_format, declared, forced

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


class Disabled(Fields):
    """The model answers at once."""

    type: Literal["disabled"]


class Enabled(Fields):
    """It thinks first. The budget is a target, not a limit, in Anthropic's words; here max_tokens is the limit."""

    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=1)] | None = None
    display: Literal["summarized"] | None = None


class Adaptive(Fields):
    """It thinks first, as long as it likes."""

    type: Literal["adaptive"]
    display: Literal["summarized"] | None = None


class OutputSchemaFormat(Fields):
    """JSON that keeps to a schema."""

    type: Literal["json_schema"]
    json_schema: JsonObject = Field(alias="schema")


class OutputConfig(Fields):
    """How long to think, and the form of the answer."""

    effort: Literal["high", "max"] | None = None
    format: OutputSchemaFormat | None = None


class MessagesMetadata(Fields):
    """Who asks; for information."""

    user_id: str | None = None


class PromptRequest(Fields):
    """The body of POST /v1/messages/count_tokens: what a prompt is made of."""

    messages: Annotated[Some[Annotated[UserTurn | AssistantTurn, Discriminator("role")]], Field(min_length=1)]
    model: str | None = None
    system: str | Some[TextBlock] | None = None
    tools: Some[MessagesTool] | None = None
    tool_choice: Annotated[AutoChoice | AnyChoice | OneChoice | NoChoice, Discriminator("type")] | None = None
    thinking: Annotated[Disabled | Enabled | Adaptive, Discriminator("type")] | None = None
    output_config: OutputConfig | None = None

    speed: Literal["standard"] | None = None

    cache_control: CacheControl | None = None

    def generation_request(self) -> GenerationRequest:
        """What it asks of the engine. Raises ApiError for fields that contradict each other."""
        config = self.output_config or OutputConfig()
        tools = [declared(tool.name, tool.description, tool.input_schema) for tool in self.tools or ()]
        force = self._forced(tools)
        offered = tools if tools and not isinstance(self.tool_choice, NoChoice) else None
        form = config.format.json_schema if config.format else None
        check_format(form, offered)
        return GenerationRequest(
            messages=self._conversation(),
            tools=offered,
            forced=force,
            thinking=self._thinks(),
            effort=config.effort if self._thinks() else None,
            format=form,
            format_field="output_config.format",
        )

    def _forced(self, tools: list[Json]) -> ForcedToolCall | None:
        choice = self.tool_choice
        if choice is None or isinstance(choice, NoChoice):
            return None
        name = choice.name if isinstance(choice, OneChoice) else None
        return forced(choice.type, name, not choice.disable_parallel_tool_use, tools)

    def _thinks(self) -> bool:
        return self.thinking is not None and not isinstance(self.thinking, Disabled)

    def _conversation(self) -> list[Json]:
        system = [] if self.system is None else [{"role": "system", "content": joined(self.system)}]
        return system + [message for turn in self.messages for message in turn.plain()]


class MessagesRequest(PromptRequest, PolicyFields):
    """The body of POST /v1/messages."""

    max_tokens: Annotated[int, Field(ge=1)]
    stream: bool | None = None
    stop_sequences: Stops | None = None

    service_tier: Literal["auto", "standard_only"] | None = None

    metadata: MessagesMetadata | None = None

    def generation_request(self) -> GenerationRequest:
        """What it asks of the engine. Raises ApiError for fields that contradict each other."""
        stop = tuple(self.stop_sequences or ())
        return replace(super().generation_request(), sampling=self.policy(), max_tokens=self.max_tokens, stop=stop)


def joined(content: str | list[TextBlock] | None) -> str:
    """A content's text; blocks stand on lines of their own."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(block.text for block in content)
