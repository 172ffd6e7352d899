"""The messages of a conversation, and their reading from a caller's input."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ds4py.chat.dsml import check_name, read_arguments, to_json
from ds4py.errors import RequestError

USER_ROLES: Final = frozenset({"user", "developer", "tool"})
"""Roles whose messages are a user turn; neighbours among them share one marker."""

ROLES: Final = ("system", "user", "developer", "assistant", "tool", "latest_reminder")

REASONING_KEYS: Final = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class ToolCall:
    """A tool call: the tool's name, its arguments as the text of a JSON object, and the call's id, if any."""

    name: str
    arguments: str
    id: str | None = None


@dataclass(frozen=True)
class Message:
    """A message of a conversation.

    Attributes:
        role: one of ROLES.
        content: its text.
        reasoning_content: of the assistant, before its text.
        tool_calls: of the assistant, after its text.
        tool_call_id: of a tool's result: the call that it answers.
    """

    role: str
    content: str
    reasoning_content: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


def read_messages(given: Sequence[Message | Mapping[str, object]]) -> list[Message]:
    """Reads and checks the messages of a conversation.

    Dictionaries have `role`, `content` and, for the assistant, `reasoning_content` (or `reasoning`) and `tool_calls`,
    each `{"type": "function", "id": ..., "function": {"name": ..., "arguments": ...}}` with the arguments as an object
    or its JSON; a tool's result may have its `tool_call_id`. Raises RequestError, naming the message, for anything that
    the layout has no place for, and for a conversation in which nobody waits for an answer.
    """
    if not given:
        raise RequestError("messages: the list is empty; give at least one user message")
    messages = [read_message(place, message) for place, message in enumerate(given)]
    check_order(messages)
    return messages


def read_message(place: int, given: object) -> Message:
    """Reads one message, from a Message or a dictionary. Raises RequestError."""
    if isinstance(given, Mapping):
        given = from_mapping(place, given)
    if not isinstance(given, Message):
        raise RequestError(f"messages[{place}]: found {type(given).__name__}, wanted a Message or a dictionary")
    if given.role not in ROLES:
        raise RequestError(f"messages[{place}]: unknown role {given.role!r}; wanted one of {', '.join(ROLES)}")
    for name, text in (("content", given.content), ("reasoning", given.reasoning_content)):
        if not isinstance(text, str) and not (name == "reasoning" and text is None):
            raise RequestError(f"messages[{place}]: {name} is {type(text).__name__}, wanted a string")
    for name, found in (("reasoning", given.reasoning_content is not None), ("tool_calls", given.tool_calls)):
        if found and given.role != "assistant":
            raise RequestError(f"messages[{place}]: only the assistant has {name}, but the role is {given.role!r}")
    for number, call in enumerate(given.tool_calls):
        check_call(f"messages[{place}]: tool_calls[{number}]", call)
    return given


def from_mapping(place: int, given: Mapping[str, object]) -> Message:
    """Reads a message from a dictionary; a key that is None or an empty list counts as absent."""
    values = {key: value for key, value in given.items() if key == "content" or (value is not None and value != [])}
    role, content = values.pop("role", None), values.pop("content", None)
    calls = read_calls(f"messages[{place}]: tool_calls", values.pop("tool_calls", ()))
    answers = values.pop("tool_call_id", None) if role == "tool" else None
    reasoning = [values.pop(key) for key in REASONING_KEYS if key in values]
    if len(reasoning) > 1:
        raise RequestError(f"messages[{place}]: give one of {' and '.join(REASONING_KEYS)}, not both")
    if values:
        raise RequestError(f"messages[{place}]: the layout has no place for {', '.join(map(repr, values))}")
    if content is None and calls:
        content = ""
    return Message(role, content, reasoning[0] if reasoning else None, calls, answers)  # type: ignore[arg-type]


def read_calls(where: str, given: object) -> tuple[ToolCall, ...]:
    """Reads the calls of a message's dictionary. Raises RequestError that begins with `where`."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise RequestError(f"{where}: found {type(given).__name__}, wanted a list of calls")
    return tuple(read_call(f"{where}[{place}]", call) for place, call in enumerate(given))


def read_call(where: str, given: object) -> ToolCall:
    """Reads one call. Raises RequestError that begins with `where`."""
    if isinstance(given, ToolCall):
        return given
    if isinstance(given, Mapping) and given.get("type", "function") == "function":
        function = given.get("function")
        if isinstance(function, Mapping) and isinstance(name := function.get("name"), str):
            arguments = function.get("arguments", {})
            return ToolCall(name, arguments if isinstance(arguments, str) else to_json(arguments), given.get("id"))
    raise RequestError(f'{where}: wanted {{"type": "function", "function": {{"name": ..., "arguments": ...}}}}')


def check_call(where: str, call: ToolCall) -> None:
    """Raises RequestError for a call that cannot be laid out."""
    if not isinstance(call.arguments, str) or not isinstance(call.name, str):
        raise RequestError(f"{where}: wanted a name and arguments that are text")
    check_name(where, call.name)
    read_arguments(where, call.arguments)


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
