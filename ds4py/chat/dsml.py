"""Tool calls as DeepSeek-V4 writes them: tags, and calls that are read from them.

    <｜DSML｜tool_calls>
    <｜DSML｜invoke name="weather">
    <｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>
    <｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜tool_calls>

A string stands there as it is, without any escaping; everything else is JSON. White space between tags is free.
"""

from __future__ import annotations

import json
import re
from typing import Final, NoReturn

from ds4py.chat.markers import DSML
from ds4py.errors import RequestError
from ds4py.json_types import Json

OPEN: Final = f"<{DSML}tool_calls>"
CLOSE: Final = f"</{DSML}tool_calls>"
CLOSE_INVOKE: Final = f"</{DSML}invoke>"
CLOSE_PARAMETER: Final = f"</{DSML}parameter>"

INVOKE: Final = re.compile(rf'<{DSML}invoke\s+name="([^"]+)"\s*>')
PARAMETER: Final = re.compile(rf'<{DSML}parameter\s+name="([^"]*)"\s+string="(true|false)"\s*>')


DECLARING: Final = (
    f"""## Tools

To call tools, end your answer with a block of this form, one invoke for each call:

<{DSML}tool_calls>
<{DSML}invoke name="TOOL">
<{DSML}parameter name="NAME" string="true">a string, exactly as it is</{DSML}parameter>
<{DSML}parameter name="OTHER" string="false">any other value, as JSON</{DSML}parameter>
</{DSML}invoke>
</{DSML}tool_calls>

The tools, and the JSON schemas of their parameters:

""",
    "\n\nUse no other tools, and no parameters that these schemas do not allow.\n",
)
"""Words before and after the tools, for a file whose chat template has none: its model was trained on no others."""


class Malformed(ValueError):
    """Raised for text that is no valid tool call."""


class CallReader:
    """The parameters of one call, as they are read."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._values: dict[str, str] = {}

    def add(self, name: str, value: str, is_string: bool) -> None:
        """Adds a parameter. Raises Malformed for a name that is there already, and for a value that is no JSON."""
        if name in self._values:
            raise Malformed(f"the parameter {name!r} comes twice")
        self._values[name] = to_json(value) if is_string else checked_json(value)

    @property
    def arguments(self) -> str:
        """The JSON object of the parameters; values that were JSON are in it as they were written."""
        return "{" + ", ".join(f"{to_json(name)}: {value}" for name, value in self._values.items()) + "}"


def to_json(value: object) -> str:
    """Returns a value as JSON in the form of the training data: with spaces, and without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False)


def checked_json(text: str) -> str:
    """The text of a JSON value, less the white space around it. Raises Malformed."""
    try:
        # Numbers are not turned into Python's, which has no place for some.
        json.loads(text, parse_constant=not_json, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise Malformed(f'a value with string="false" is no JSON: {error}') from None
    return text.strip()


def not_json(constant: str) -> NoReturn:
    """Raises ValueError for NaN and infinities, which Python reads but JSON lacks."""
    raise ValueError(f"{constant} is not in JSON")


def check_name(where: str, name: str) -> None:
    """Raises RequestError, beginning with `where`, for a name that a tag cannot hold."""
    if not name or '"' in name:
        raise RequestError(
            f"{where}: the name {name!r} cannot be written in a call; it needs characters, and no quotes"
        )


def read_arguments(where: str, text: str) -> Json:
    """The JSON object of a call's arguments. Raises RequestError, beginning with `where`, for anything else."""
    try:
        found = json.loads(text, parse_constant=not_json)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{where}: the arguments are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise RequestError(f"{where}: the arguments are JSON of {type(found).__name__}, wanted an object")
    return found
