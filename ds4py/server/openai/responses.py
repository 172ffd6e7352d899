"""POST /v1/responses: the request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from ds4py.json_types import Json
from ds4py.server.errors import refused
from ds4py.server.fields import (
    Absent,
    Fields,
    JsonObject,
    Notes,
    PolicyFields,
    Some,
    StreamOptions,
    Text,
    Texts,
    joined,
)
from ds4py.server.generation_request import GenerationRequest
from ds4py.server.openai.chat import ANY_OBJECT, ObjectFormat, TextFormat
from ds4py.server.openai.messages import assistant, tool_call, tool_result
from ds4py.server.openai.tools import check_format, declared, forced

Status = Literal["in_progress", "completed", "incomplete"]

WITH_LOGPROBS = "message.output_text.logprobs"


class MessageItem(Fields):
    """A message of any role."""

    role: Literal["user", "system", "developer", "assistant"]
    content: Texts
    type: Literal["message"] = "message"
    id: str | None = None
    status: Status | None = None
    phase: None = None


class CallItem(Fields):
    """A tool call of the model."""

    type: Literal["function_call"]
    call_id: Text
    name: Text
    arguments: str
    id: str | None = None
    status: Status | None = None
    namespace: None = None
    caller: None = None


class CallOutputItem(Fields):
    """The result of a tool call."""

    type: Literal["function_call_output"]
    call_id: Text
    output: Texts
    id: str | None = None
    status: Status | None = None


class ReasoningText(Fields):
    """A part of the model's reasoning."""

    type: Literal["reasoning_text"]
    text: str


class ReasoningItem(Fields):
    """The model's reasoning in an earlier turn."""

    type: Literal["reasoning"]
    id: str | None = None
    content: Some[ReasoningText] | None = None
    summary: Absent = None
    encrypted_content: None = None
    status: Status | None = None


def item_type(item: Any) -> str:
    """Returns the type of an item; a message may leave it out."""
    return str(item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "message"))


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[CallItem, Tag("function_call")]
    | Annotated[CallOutputItem, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")],
    Discriminator(item_type),
]


class FunctionTool(Fields):
    """A tool that the caller defines; the server has none of its own."""

    type: Literal["function"]
    name: Text
    description: str | None = None
    parameters: JsonObject | None = None
    strict: Literal[False] | None = None


class ResponseToolChoice(Fields):
    """The choice of one tool that has to be called."""

    type: Literal["function"]
    name: Text


class TextSchemaFormat(Fields):
    """JSON that keeps to a schema."""

    type: Literal["json_schema"]
    name: str | None = None
    json_schema: JsonObject = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextConfig(Fields):
    """The format of the answer."""

    format: Annotated[TextFormat | ObjectFormat | TextSchemaFormat, Discriminator("type")] | None = None
    verbosity: Literal["medium"] | None = None


class ReasoningConfig(Fields):
    """The effort of thinking."""

    effort: Literal["none", "high", "max"] | None = None
    summary: None = None
    generate_summary: None = None


class ResponseRequest(PolicyFields):
    """The body of POST /v1/responses. Nothing is stored: each request has the whole conversation."""

    input: Text | Annotated[Some[Item], Field(min_length=1)]
    model: str | None = None
    instructions: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    tools: Some[FunctionTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | ResponseToolChoice | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: Some[Literal["message.output_text.logprobs"]] | None = None

    parallel_tool_calls: bool | None = None
    store: Literal[False] | None = None
    background: Literal[False] | None = None
    truncation: Literal["disabled"] | None = None
    service_tier: Literal["auto", "default"] | None = None
    previous_response_id: None = None
    conversation: None = None
    prompt: None = None
    max_tool_calls: None = None

    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    metadata: Notes | None = None

    @property
    def thinks(self) -> bool:
        """Whether the model is to think first."""
        return self.reasoning is not None and self.reasoning.effort not in (None, "none")

    def generation_request(self) -> GenerationRequest:
        """Returns the request to the engine. Raises ApiError for fields that contradict each other."""
        tools = [declared(tool.name, tool.description, tool.parameters) for tool in self.tools or ()]
        named = self.tool_choice if isinstance(self.tool_choice, ResponseToolChoice) else None
        choice = "function" if isinstance(self.tool_choice, ResponseToolChoice) else self.tool_choice
        force = forced(choice, named.name if named else None, self.parallel_tool_calls, tools)
        offered = tools if tools and choice != "none" else None
        check_format(self._format(), offered)
        effort = self.reasoning.effort if self.reasoning else None
        return GenerationRequest(
            messages=self._conversation(),
            tools=offered,
            forced=force,
            thinking=self.thinks,
            effort=None if effort == "none" else effort,
            format=self._format(),
            format_field="text.format",
            sampling=self.policy(),
            max_tokens=self.max_output_tokens,
            logprobs=self._alternatives(),
        )

    def _conversation(self) -> list[Json]:
        system = [] if self.instructions is None else [{"role": "system", "content": self.instructions}]
        if isinstance(self.input, str):
            return [*system, {"role": "user", "content": self.input}]
        return system + messages(self.input)

    def _format(self) -> Json | None:
        form = self.text.format if self.text else None
        if isinstance(form, TextSchemaFormat):
            return form.json_schema
        return ANY_OBJECT if isinstance(form, ObjectFormat) else None

    def _alternatives(self) -> int | None:
        if self.include:
            return self.top_logprobs or 0
        if self.top_logprobs:
            raise refused("top_logprobs", f"needs include: [{WITH_LOGPROBS!r}]")
        return None


def messages(items: list[MessageItem | CallItem | CallOutputItem | ReasoningItem]) -> list[Json]:
    """Returns the messages of a list of items; the items of one assistant's turn become one message."""
    result: list[Json] = []
    for item in items:
        if isinstance(item, CallOutputItem):
            result.append(tool_result(item.call_id, joined(item.output)))
        elif isinstance(item, MessageItem) and item.role != "assistant":
            result.append({"role": item.role, "content": joined(item.content)})
        else:
            if not result or result[-1]["role"] != "assistant":
                result.append(assistant("", None, []))
            add(result[-1], item)
    return result


def add(message: Json, item: MessageItem | CallItem | ReasoningItem) -> None:
    """Adds an item to an assistant's message."""
    if isinstance(item, MessageItem):
        message["content"] += joined(item.content)
    elif isinstance(item, CallItem):
        message.setdefault("tool_calls", []).append(tool_call(item.call_id, item.name, item.arguments))
    elif item.content:
        text = "".join(part.text for part in item.content)
        message["reasoning_content"] = message.get("reasoning_content", "") + text
