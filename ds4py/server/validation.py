"""Errors of a request's body in words, each with the name of its field."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, Final

from ds4py.server.errors import ApiError, refused

TAGS: Final = {"'role'": "role"}
"""Fields that say which kind of object one is, as pydantic writes them; all others are `type`."""

UNSUPPORTED: Final = ("extra_forbidden", "literal_error", "union_tag_invalid")

SHORT: Final = reprlib.Repr()
SHORT.maxstring = SHORT.maxother = 60


def validation_error(problems: Sequence[Any], body: object) -> ApiError:
    """Returns an ApiError for pydantic's problems with a body; it describes the one at the longest path."""
    if any(problem["type"] == "json_invalid" for problem in problems):
        return ApiError(400, "the body is not JSON")
    if not isinstance(body, dict):
        return ApiError(400, "the body is not a JSON object sent as application/json")
    placed = [(each, place(each["loc"][1:], body)) for each in problems]
    problem, path = max(placed, key=lambda found: (len(found[1]), found[0]["type"] in UNSUPPORTED))
    if problem["type"] == "union_tag_invalid":  # which is said of the object that has the tag
        path = [*path, TAGS.get(problem["ctx"]["discriminator"], "type")]
    param = written(path)
    return refused(param, describe(problem), "unsupported_value" if problem["type"] in UNSUPPORTED else None)


def describe(problem: Any) -> str:
    """Describes a problem of a field in words."""
    kind, found = problem["type"], problem.get("input")
    if kind == "extra_forbidden":
        return "this field is not supported"
    if kind == "literal_error":
        return f"{short(found)} is not supported, only {problem['ctx']['expected']}"
    if kind == "union_tag_invalid":
        return f"{problem['ctx']['tag']!r} is not supported, only {problem['ctx']['expected_tags']}"
    if kind == "none_required":
        return f"{short(found)} is not supported, only null"
    if kind == "missing":
        return "this field is missing"
    return f"found {short(found)}: {problem['msg']}"


def short(value: object) -> str:
    """Returns a value's repr, shortened for a message."""
    return SHORT.repr(value)


def place(loc: Sequence[str | int], body: object) -> list[str | int]:
    """Returns the path of a problem without the names of union members that pydantic inserts."""
    path: list[str | int] = []
    for i, step in enumerate(loc):
        if isinstance(body, dict) and (step in body or (i == len(loc) - 1 and not is_model(step))):
            body = body.get(step)
        elif isinstance(body, list) and isinstance(step, int):
            body = body[step]
        else:
            continue
        path.append(step)
    return path


def is_model(step: str | int) -> bool:
    """Whether a step of a path is the name of a class or a type, not of a field."""
    return isinstance(step, int) or not step.islower() or step in ("str", "int", "float", "bool", "none") or "[" in step


def written(path: Sequence[str | int]) -> str:
    """Writes a path as `messages[2].content`; the empty path is `body`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.lstrip(".") or "body"
