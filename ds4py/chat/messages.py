"""One message of a conversation, and what of a caller's input can be one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ds4py.errors import RequestError

USER_ROLES: Final = frozenset({"user", "developer", "tool"})
"""Roles whose messages are a user turn; neighbours among them share one marker."""

ROLES: Final = ("system", "user", "developer", "assistant", "tool", "latest_reminder")

REASONING_KEYS: Final = ("reasoning", "reasoning_content")

NO_TOOLS = "tool declarations and calls cannot be laid out yet: leave them out, or put them into the text"


@dataclass(frozen=True)
class ToolCall:
    """What the assistant asks of a tool: its name, a JSON object of arguments as text, and the call's id, if any."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True)
class Message:
    """A message: its role (one of ROLES), its text, and for the assistant the reasoning before that text and the calls
    of tools after it."""

    role: str
    content: str
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


def read_messages(given: Sequence[Message | Mapping[str, object]]) -> list[Message]:
    """The messages of a conversation, checked.

    Dictionaries have `role`, `content` and, for the assistant, `reasoning` (or `reasoning_content`);
    a tool's result may have its `tool_call_id`. Raises RequestError, naming the message, for anything
    that the layout has no place for, and for a conversation in which nobody waits for an answer.
    """
    if not given:
        raise RequestError("messages: the list is empty; give at least one user message")
    messages = [read_message(place, message) for place, message in enumerate(given)]
    check_order(messages)
    return messages


def read_message(place: int, given: object) -> Message:
    """One message, from a Message or a dictionary."""
    if isinstance(given, Mapping):
        given = from_mapping(place, given)
    if not isinstance(given, Message):
        raise RequestError(f"messages[{place}]: found {type(given).__name__}, wanted a Message or a dictionary")
    if given.role not in ROLES:
        raise RequestError(f"messages[{place}]: unknown role {given.role!r}; wanted one of {', '.join(ROLES)}")
    for name, text in (("content", given.content), ("reasoning", given.reasoning_content)):
        if not isinstance(text, str) and not (name == "reasoning" and text is None):
            raise RequestError(f"messages[{place}]: {name} is {type(text).__name__}, wanted a string")
    if given.tool_calls:
        raise RequestError(f"messages[{place}]: tool_calls: {NO_TOOLS}")
    if given.reasoning_content is not None and given.role != "assistant":
        raise RequestError(f"messages[{place}]: only the assistant has reasoning, but the role is {given.role!r}")
    return given


def from_mapping(place: int, given: Mapping[str, object]) -> Message:
    """A message from the keys of a dictionary; a key that is None or an empty list counts as absent."""
    values = {key: value for key, value in given.items() if key == "content" or (value is not None and value != [])}
    for key in ("tool_calls", "tools", "function_call"):
        if key in values:
            raise RequestError(f"messages[{place}]: {key}: {NO_TOOLS}")
    role = values.pop("role", None)
    content = values.pop("content", None)
    if role == "tool":
        values.pop("tool_call_id", None)  # orders the results of declared calls; there are none here
    reasoning = [values.pop(key) for key in REASONING_KEYS if key in values]
    if len(reasoning) > 1:
        raise RequestError(f"messages[{place}]: give one of {' and '.join(REASONING_KEYS)}, not both")
    if values:
        raise RequestError(f"messages[{place}]: the layout has no place for {', '.join(map(repr, values))}")
    return Message(role, content, reasoning[0] if reasoning else None)  # type: ignore[arg-type]


def check_order(messages: Sequence[Message]) -> None:
    """Raises RequestError unless a user turn is last, system text aside, and reminders stand before user turns."""
    talk = [(place, message.role) for place, message in enumerate(messages) if message.role != "system"]
    if not talk or talk[-1][1] not in USER_ROLES:
        found = f"the last one is the {talk[-1][1]!r} message" if talk else "there is only system text"
        raise RequestError(f"messages: {found}, which leaves nothing to answer; end with a user message")
    for (place, role), (_, following) in pairwise(talk):
        before_assistant = role == "latest_reminder" and following == "assistant"
        if before_assistant or (following == "latest_reminder" and role in USER_ROLES):
            raise RequestError(
                f"messages[{place}]: {role!r} before {following!r}: a latest_reminder goes right before a user turn"
            )
