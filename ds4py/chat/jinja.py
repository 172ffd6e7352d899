"""Running chat templates with Jinja."""

from json import loads
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ds4py.chat.dsml import to_json


class TemplateFailure(Exception):
    """A template that cannot be read, or fails."""


def render(source: str, **given: object) -> str:
    """What a template makes of its variables. Raises TemplateFailure."""
    try:
        # The source comes from a file that anybody may have made: it runs in a sandbox.
        return environment().from_string(source).render(**given)
    except (
        TemplateError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise TemplateFailure(str(error)) from error


def environment() -> ImmutableSandboxedEnvironment:
    """Jinja as chat templates expect it."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    made.globals["raise_exception"] = fail
    made.filters["from_json"] = loads
    made.filters["tojson"] = lambda value, **_: to_json(value)  # Jinja's own is for HTML
    return made


def fail(message: str) -> NoReturn:
    """What a template calls for input that it does not take."""
    raise TemplateError(message)
