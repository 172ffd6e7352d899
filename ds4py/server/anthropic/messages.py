"""The requests of POST /v1/messages and /v1/messages/count_tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Discriminator, Field

from ds4py.json_types import Json
from ds4py.server.anthropic.content import AssistantTurn, CacheControl, TextBlock, UserTurn, joined
from ds4py.server.anthropic.tools import AnyChoice, AutoChoice, MessagesTool, NoChoice, OneChoice
from ds4py.server.fields import Fields, JsonObject, PolicyFields, Some, Stops
from ds4py.server.generation_request import ForcedToolCall, GenerationRequest
from ds4py.server.openai.tools import check_format, declared, forced


class Disabled(Fields):
    """The model answers without thinking."""

    type: Literal["disabled"]


class Enabled(Fields):
    """The model thinks first. The budget is a target and not a limit; `max_tokens` is the limit."""

    type: Literal["enabled"]
    budget_tokens: Annotated[int, Field(ge=1)] | None = None
    display: Literal["summarized"] | None = None


class Adaptive(Fields):
    """The model thinks first, without a budget."""

    type: Literal["adaptive"]
    display: Literal["summarized"] | None = None


class OutputSchemaFormat(Fields):
    """JSON that keeps to a schema."""

    type: Literal["json_schema"]
    json_schema: JsonObject = Field(alias="schema")


class OutputConfig(Fields):
    """The effort of thinking, and the format of the answer."""

    effort: Literal["high", "max"] | None = None
    format: OutputSchemaFormat | None = None


class MessagesMetadata(Fields):
    """The caller's metadata, which has no effect."""

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
        """Returns the request to the engine. Raises ApiError for fields that contradict each other."""
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
        """Returns the request to the engine. Raises ApiError for fields that contradict each other."""
        stop = tuple(self.stop_sequences or ())
        return replace(super().generation_request(), sampling=self.policy(), max_tokens=self.max_tokens, stop=stop)
