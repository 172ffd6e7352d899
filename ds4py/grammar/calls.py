"""A grammar of tool calls: an answer that is nothing but calls, with arguments that the tools' schemas allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ds4py.chat.dsml import CLOSE, CLOSE_INVOKE, CLOSE_PARAMETER, OPEN, to_json
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
    return lark(tokenizer, "\n".join(rules(functions, parallel)), what="the grammar of tool calls")


def rules(functions: Sequence[Mapping[str, Any]], parallel: bool) -> Iterator[str]:
    """The rules, in llguidance's dialect of Lark."""
    yield f"start: {text(BEFORE_CALLS + OPEN + END)} call{'+' if parallel else ''} {text(CLOSE)}"
    yield f"call: {' | '.join(f'call_{number}' for number in range(len(functions)))}"
    yield f"string[suffix={text(CLOSE_PARAMETER)}]: /(?s:.*)/"
    for number, function in enumerate(functions):
        yield from call_rules(number, function)


def call_rules(number: int, function: Mapping[str, Any]) -> Iterator[str]:
    """The rules of one function's call."""
    where = f"tools: the parameters of {function['name']!r}"
    schema = function.get("parameters") or {"type": "object"}
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or schema.get("type", "object") != "object":
        raise RequestError(f"{where} are no object with properties, so that a call cannot be asked for")
    shared = {key: schema[key] for key in DEFINITIONS if key in schema}
    required = schema.get("required", ())
    parts = [text(f'<{DSML}invoke name="{function["name"]}">\n')]
    for place, (name, value) in enumerate(properties.items()):
        rule = f"parameter_{number}_{place}"
        parts.append(rule if name in required else f"{rule}?")
        yield f"{rule}: {' | '.join(parameter(name, value, shared))}"
    yield f"call_{number}: {' '.join([*parts, text(CLOSE_INVOKE + END)])}"


def parameter(name: str, schema: object, shared: Mapping[str, object]) -> Iterator[str]:
    """The ways to write a parameter."""
    as_string = text(f'<{DSML}parameter name="{name}" string="true">')
    as_json = text(f'<{DSML}parameter name="{name}" string="false">')
    end = text(CLOSE_PARAMETER + END)
    found: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    listed = [found["const"]] if "const" in found else found.get("enum")
    if listed is not None:
        for value in listed:
            is_string = isinstance(value, str)
            yield f"{as_string if is_string else as_json} {text(value if is_string else to_json(value))} {end}"
        return
    kinds = found.get("type")
    if kinds is None or "string" in kinds:
        yield f"{as_string} string {text(END)}"
    if kinds not in ("string", ["string"]):
        json = {**found, **shared, "x-guidance": {"whitespace_pattern": SPACE}}
        yield f"{as_json} %json {to_json(json)} {end}"


def text(literal: str) -> str:
    """A literal in a rule."""
    return to_json(literal)
