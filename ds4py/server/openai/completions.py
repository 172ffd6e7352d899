"""The request of POST /v1/completions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ds4py.server.errors import refused
from ds4py.server.fields import OpenAIPolicyFields, Some, Stops, StreamOptions, Text, stop_strings
from ds4py.server.generation_request import GenerationRequest

Ids = Annotated[Some[int], Field(min_length=1)]


class CompletionRequest(OpenAIPolicyFields):
    """The body of POST /v1/completions. The prompt is one text, or one list of token ids."""

    prompt: Text | Ids | Some[Text]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: Text | Stops | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    n: Literal[1] | None = None
    best_of: Literal[1] | None = None
    echo: Literal[False] | None = None
    suffix: None = None

    user: str | None = None

    def generation_request(self) -> GenerationRequest:
        """Returns the request to the engine. Raises ApiError for several prompts."""
        return GenerationRequest(
            prompt=self._one_prompt(),
            sampling=self.policy(),
            max_tokens=self.max_tokens,
            stop=stop_strings(self.stop),
            logprobs=self.logprobs,
        )

    def _one_prompt(self) -> str | list[int]:
        if isinstance(self.prompt, str):
            return self.prompt
        texts = [each for each in self.prompt if isinstance(each, str)]
        if not texts:
            return [each for each in self.prompt if isinstance(each, int)]
        if len(texts) > 1:
            raise refused("prompt", f"found {len(texts)} prompts, only one is supported", "unsupported_value")
        return texts[0]
