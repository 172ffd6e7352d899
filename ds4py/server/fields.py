"""Fields that requests of several APIs share. What a model does not name is refused, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from ds4py import Sampling
from ds4py.json_types import Json
from ds4py.server.errors import refused

MOST_FIELDS = 100
"""The most fields that an object of a request may have; the models have at most half as many."""

Entry = TypeVar("Entry")
Some = Annotated[list[Entry], Field(fail_fast=True)]
"""A list whose validation stops at the first wrong entry."""
Text = Annotated[str, StringConstraints(min_length=1)]
MOST_STOPS = 64
"""The most stop strings of a request; each of them is searched for in every piece of the answer."""
Stops = Annotated[Some[Text], Field(max_length=MOST_STOPS)]

MOST_DEPTH = 100
"""The deepest nesting of free JSON in a request; the schema reader allows 128."""


def check_depth(value: Any) -> Any:
    """Returns the value. Raises ValueError if it is nested more than MOST_DEPTH deep."""
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for each in level for inner in inside(each)]
    if any(isinstance(each, (dict, list)) for each in level):
        raise ValueError(f"more than {MOST_DEPTH} objects and lists are in each other")
    return value


def inside(value: Any) -> Iterable[Any]:
    """Returns the values of an object or a list; nothing for other values."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


JsonObject = Annotated[Json, AfterValidator(check_depth)]
"""An object whose fields are not checked here, such as a schema."""
Absent = Annotated[Some[Any], Field(max_length=0)] | None
"""A list that has to be empty."""


class Fields(BaseModel):
    """Base of all models of a request. Unknown fields are errors, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, value: Any) -> Any:
        """An error for each of a million fields would take more memory than the request."""
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"the object has {len(value)} fields")
        return value


class PolicyFields(Fields):
    """Sampling fields; the last four have the names of llama.cpp's server. Absent fields have no effect."""

    temperature: Annotated[float, Field(ge=0, le=100)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None = None
    top_k: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    repeat_penalty: Annotated[float, Field(gt=0, le=100)] | None = None
    repeat_last_n: Annotated[int, Field(ge=-1, lt=2**31)] | None = None

    def policy(self, **more: Any) -> Sampling:
        """Returns the sampling options of the fields that are given."""
        given = {ours: getattr(self, theirs) for theirs, ours in SAMPLING_NAMES.items()} | more
        return Sampling(**{name: value for name, value in given.items() if value is not None})


SAMPLING_NAMES = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "top_k": "top_k",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
    "repeat_last_n": "penalty_last_n",
}


TokenId = Annotated[str, StringConstraints(pattern=r"^\d{1,9}$")]
Notes = Annotated[dict[str, str], Field(max_length=16)]
"""Key-value pairs that a caller attaches to a request; they have no effect."""


class OpenAIPolicyFields(PolicyFields):
    """Sampling fields with the penalties and the bias of OpenAI's completions."""

    presence_penalty: Annotated[float, Field(ge=-100, le=100)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-100, le=100)] | None = None
    logit_bias: Annotated[dict[TokenId, float], Field(max_length=1024)] | None = None
    """Added to the logits of tokens, by their ids."""

    def policy(self, **more: Any) -> Sampling:
        """Returns the sampling options of the fields that are given."""
        bias = None if self.logit_bias is None else {int(token): value for token, value in self.logit_bias.items()}
        return super().policy(
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            logit_bias=bias,
            **more,
        )


class TextPart(Fields):
    """A part of a message that is text; other kinds are refused by their type."""

    type: Literal["text", "input_text", "output_text"]
    text: str
    annotations: Absent = None
    logprobs: Absent = None


Texts = str | Some[TextPart]
"""A message's content: a text, or parts that are texts."""


def joined(content: Texts | None) -> str:
    """Returns a content's text; its parts are joined by line ends."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part.text for part in content)


class StreamOptions(Fields):
    """Options of a stream: whether it ends with the usage."""

    include_usage: bool | None = None
    include_obfuscation: Literal[False] | None = None


def stop_strings(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """Returns the stop strings as a tuple, from one, several or none."""
    return () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)


class NamedSchema(Fields):
    """A named JSON schema."""

    name: str | None = None
    description: str | None = None
    json_schema: JsonObject = Field(alias="schema")
    strict: bool | None = None
    """Either way the text keeps to the schema."""


def check_model(given: str | None, served: Sequence[str]) -> None:
    """Raises ApiError (404) if the request names a model that is not served."""
    if given is not None and given not in served:
        error = refused("model", f"{given!r} is not served here, but {served[0]!r}", "model_not_found")
        error.status_code = 404
        raise error
