"""The request to the engine, in one form for all APIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ds4py import Sampling, grammar
from ds4py.chat import encode_chat
from ds4py.json_types import Json

if TYPE_CHECKING:
    from ds4py import Engine, Tokenizer
    from ds4py.generation import ChatStream
    from ds4py.grammar import Constraint


@dataclass(frozen=True)
class ForcedToolCall:
    """The answer has to be tool calls: of the tool `name`, or of any if None; several only if `parallel`."""

    name: str | None = None
    parallel: bool = True


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """One request to generate. Either `messages` or `prompt` is given.

    Attributes:
        messages: a conversation, as `Engine.chat` takes it.
        prompt: a text or ids to continue.
        tools: declared functions, in OpenAI's form, and which of them has to be called.
        thinking: whether the model is to think first, and `effort` how long.
        format: the JSON schema of the answer, None for free text; and the request's field that says so.
        logprobs: how many alternatives of each token; None for no log-probabilities.
    """

    messages: Sequence[Json] | None = None
    prompt: str | Sequence[int] | None = None
    tools: Sequence[Json] | None = None
    forced: ForcedToolCall | None = None
    thinking: bool = False
    effort: str | None = None
    format: Json | None = None
    format_field: str = "response_format"
    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    def start(self, engine: Engine, drafting: Mapping[str, Any]) -> ChatStream:
        """Returns the stream of the answer; nothing is computed yet. Raises RequestError and ApiError."""
        given: Json = {
            "max_tokens": self.max_tokens,
            "logprobs": self.logprobs,
            "constraint": self._constraint(engine.tokenizer),
        }
        options: Json = {key: value for key, value in given.items() if value is not None}
        options |= {"sampling": self.sampling, "stop": self.stop, **drafting}
        if self.prompt is not None:
            return engine.complete(self.prompt, **options)
        assert self.messages is not None
        return engine.chat(self.messages, tools=self.tools, thinking=self.thinking, effort=self.effort, **options)

    def prompt_ids(self, tokenizer: Tokenizer) -> Sequence[int]:
        """Returns the token ids of the conversation's prompt, without a limit of length. Raises RequestError."""
        assert self.messages is not None
        return encode_chat(tokenizer, self.messages, tools=self.tools, thinking=self.thinking, effort=self.effort)

    def _constraint(self, tokenizer: Tokenizer) -> Constraint | None:
        """Returns the grammar of the answer, or None. Reasoning before the answer is not constrained."""
        answer: Constraint
        if self.forced is not None:
            tools, name, parallel = self.tools or (), self.forced.name, self.forced.parallel
            answer = grammar.tool_calls(tokenizer, tools, name=name, parallel=parallel)
        elif self.format is not None:
            answer = grammar.json_schema(tokenizer, self.format, what=self.format_field)
        else:
            return None
        return grammar.AfterThinking(tokenizer, answer) if self.thinking else answer
