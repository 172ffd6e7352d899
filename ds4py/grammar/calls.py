"""A grammar of tool calls: an answer that is nothing but calls, with arguments that the tools' schemas allow."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ds4py.chat.dsml import CLOSE, CLOSE_INVOKE, CLOSE_PARAMETER, OPEN, check_name, to_json
from ds4py.chat.markers import DSML
from ds4py.chat.reply import BEFORE_CALLS
from ds4py.chat.tools import Tools, read_tools
from ds4py.errors import RequestError
from ds4py.grammar.guidance import SPACE, Grammar, lark

if TYPE_CHECKING:
    from ds4py.tokenizer import Tokenizer

DEFINITIONS: Final = ("$defs", "definitions")

END: Final = "\n"


def tool_calls(tokenizer: Tokenizer, tools: Tools, *, name: str | None = None, parallel: bool = True) -> Grammar:
    """Calls of these tools, at least one; of the tool of that name only, where one is given.

    For an answer that has to be a call. Parameters come in the order of the schema, those that are not required may be
    left out, and there are no others. Of a string only `enum` and `const` are enforced, of everything else the whole
    schema.

    Args:
        parallel: whether there may be several calls.

    Raises RequestError for a name that no tool has, parameters that are no object with properties, and as `Grammar`.
    """
    functions = [function for function in read_tools(tools) if name in (None, function["name"])]
    if not functions:
        raise RequestError(f"there is no tool {name!r} to call" if name else "there are no tools to call")
    return lark(tokenizer, "\n".join(rules(functions, parallel)), what="tools: the grammar of calls")


def rules(functions: Sequence[Mapping[str, Any]], parallel: bool) -> Iterator[str]:
    """Yields the rules in llguidance's dialect of Lark."""
    yield f"start: {text(BEFORE_CALLS + OPEN + END)} call{'+' if parallel else ''} {text(CLOSE)}"
    yield f"call: {' | '.join(f'call_{number}' for number in range(len(functions)))}"
    yield f"string[suffix={text(CLOSE_PARAMETER)}]: /(?s:.*)/"
    for number, function in enumerate(functions):
        yield from call_rules(number, function)


def call_rules(number: int, function: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rules of one function's call. Raises RequestError."""
    where = f"tools: the parameters of {function['name']!r}"
    schema = function.get("parameters") or {"type": "object"}
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or schema.get("type", "object") != "object":
        raise RequestError(f"{where} are no object with properties, so that a call cannot be asked for")
    shared = {key: schema[key] for key in DEFINITIONS if key in schema}
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise RequestError(f"{where}: required is {type(required).__name__}, wanted a list of names")
    parts = [text(f'<{DSML}invoke name="{function["name"]}">\n')]
    for place, (name, value) in enumerate(properties.items()):
        rule = f"parameter_{number}_{place}"
        parts.append(rule if name in required else f"{rule}?")
        yield f"{rule}: {' | '.join(parameter(f'{where}: {name!r}', name, value, shared))}"
    yield f"call_{number}: {' '.join([*parts, text(CLOSE_INVOKE + END)])}"


def parameter(where: str, name: str, schema: object, shared: Mapping[str, object]) -> Iterator[str]:
    """Yields the ways to write a parameter. Raises RequestError, beginning with `where`, for what cannot be one."""
    check_name(where, name)
    if not isinstance(schema, (Mapping, bool)):
        raise RequestError(f"{where} is {type(schema).__name__}, wanted a schema")
    as_string = text(f'<{DSML}parameter name="{name}" string="true">')
    as_json = text(f'<{DSML}parameter name="{name}" string="false">')
    end = text(CLOSE_PARAMETER + END)
    found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    if values := values_of(where, found):
        for value in values:
            is_string = isinstance(value, str)
            yield f"{as_string if is_string else as_json} {text(value if is_string else to_json(value))} {end}"
        return
    kinds = kinds_of(where, found)
    if not kinds or "string" in kinds:
        yield f"{as_string} string {text(END)}"
    if kinds != ["string"]:
        json = {**found, **shared, "x-guidance": {"whitespace_pattern": SPACE}}
        yield f"{as_json} %json {to_json(json)} {end}"


def values_of(where: str, schema: Mapping[str, Any]) -> list[Any]:
    """Returns the values of a schema's `enum` or `const`. Raises RequestError for a string that a call cannot hold."""
    values = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if not isinstance(values, list) or ("enum" in schema and not values):
        raise RequestError(f"{where}: enum is {reprlib.repr(values)}, wanted a list of values")
    if any(isinstance(value, str) and CLOSE_PARAMETER in value for value in values):
        raise RequestError(f"{where}: a call cannot hold the string {CLOSE_PARAMETER}, which ends its parameters")
    return values


def kinds_of(where: str, schema: Mapping[str, Any]) -> list[Any]:
    """Returns the types that a schema names, as a list. Raises RequestError."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list):
        raise RequestError(f"{where}: type is {reprlib.repr(kinds)}, wanted a name or a list of names")
    return kinds


def text(literal: str) -> str:
    """Returns a literal as a rule writes it."""
    return to_json(literal)
