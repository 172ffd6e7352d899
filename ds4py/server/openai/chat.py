"""The request of POST /v1/chat/completions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field

from ds4py.json_types import Json
from ds4py.server.errors import refused
from ds4py.server.fields import (
    Fields,
    NamedSchema,
    Notes,
    OpenAIPolicyFields,
    Some,
    Stops,
    StreamOptions,
    Text,
    stop_strings,
)
from ds4py.server.generation_request import GenerationRequest
from ds4py.server.openai.messages import ChatMessage
from ds4py.server.openai.tools import ChatTool, ChatToolChoice, check_format, declared, forced


class TextFormat(Fields):
    """Free text."""

    type: Literal["text"]


ANY_OBJECT: Json = {"type": "object"}
"""The JSON schema of any object."""


class ObjectFormat(Fields):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(Fields):
    """JSON that keeps to a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[TextFormat | ObjectFormat | JsonSchemaFormat, Discriminator("type")]


class Thinking(Fields):
    """Whether the model thinks first, as in DeepSeek's API."""

    type: Literal["enabled", "disabled"]


class ChatRequest(OpenAIPolicyFields):
    """The body of POST /v1/chat/completions."""

    messages: Annotated[Some[ChatMessage], Field(min_length=1)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: Text | Stops | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: Some[ChatTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ChatToolChoice | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: Literal["none", "high", "max"] | None = None
    thinking: Thinking | None = None

    n: Literal[1] | None = None
    parallel_tool_calls: bool | None = None
    store: Literal[False] | None = None
    service_tier: Literal["auto", "default"] | None = None
    verbosity: Literal["medium"] | None = None
    modalities: Some[Literal["text"]] | None = None

    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    metadata: Notes | None = None

    def generation_request(self) -> GenerationRequest:
        """Returns the request to the engine. Raises ApiError for fields that contradict each other."""
        tools = [declared(**tool.function.model_dump(exclude={"strict"})) for tool in self.tools or ()]
        named = self.tool_choice if isinstance(self.tool_choice, ChatToolChoice) else None
        choice = "function" if isinstance(self.tool_choice, ChatToolChoice) else self.tool_choice
        force = forced(choice, named.function.name if named else None, self.parallel_tool_calls, tools)
        offered = tools if tools and choice != "none" else None
        check_format(self._format(), offered)
        return GenerationRequest(
            messages=[message.plain() for message in self.messages],
            tools=offered,
            forced=force,
            thinking=self._thinks(),
            effort=None if self.reasoning_effort == "none" else self.reasoning_effort,
            format=self._format(),
            sampling=self.policy(),
            max_tokens=self._limit(),
            stop=stop_strings(self.stop),
            logprobs=self._alternatives(),
        )

    def _thinks(self) -> bool:
        by_effort = None if self.reasoning_effort is None else self.reasoning_effort != "none"
        by_switch = None if self.thinking is None else self.thinking.type == "enabled"
        if by_effort is not None and by_switch is not None and by_effort != by_switch:
            raise refused("reasoning_effort", f"{self.reasoning_effort!r} contradicts the field thinking")
        return bool(by_effort or by_switch)

    def _format(self) -> Json | None:
        if isinstance(self.response_format, JsonSchemaFormat):
            return self.response_format.json_schema.json_schema
        return ANY_OBJECT if isinstance(self.response_format, ObjectFormat) else None

    def _limit(self) -> int | None:
        limits = {self.max_tokens, self.max_completion_tokens} - {None}
        if len(limits) > 1:
            raise refused("max_tokens", "contradicts max_completion_tokens; give one of them")
        return limits.pop() if limits else None

    def _alternatives(self) -> int | None:
        if not self.logprobs:
            if self.top_logprobs:
                raise refused("top_logprobs", "needs logprobs: true")
            return None
        return self.top_logprobs or 0
