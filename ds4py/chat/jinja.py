"""Renders chat templates with Jinja."""

from json import loads
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ds4py.chat.dsml import to_json


class TemplateFailure(Exception):
    """Raised for a template that cannot be read, or that fails."""


def render(source: str, **given: object) -> str:
    """Renders a template with these variables. Raises TemplateFailure."""
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
    """Returns a sandboxed Jinja environment with the functions that chat templates expect."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    made.globals["raise_exception"] = fail
    made.filters["from_json"] = loads
    made.filters["tojson"] = lambda value, **_: to_json(value)  # Jinja's own is for HTML
    return made


def fail(message: str) -> NoReturn:
    """Raises TemplateError; templates call it for input that they refuse."""
    raise TemplateError(message)
