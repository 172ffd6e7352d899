"""The official prompt layout, as pieces of text that are markers or not.

    BOS [effort] [system] [tools] ( User user-turn  Assistant assistant-turn EOS )*  User user-turn  Assistant

There is neither a newline after a marker nor a marker for the system text. What follows the last
`Assistant` opens the answer: `<think>`, or a bare `</think>` where the model is not to think.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ds4py.chat.markers import ASSISTANT, BOS, END_THINK, EOS, REMINDER, THINK, USER
from ds4py.chat.messages import USER_ROLES, Message, read_messages
from ds4py.chat.segments import Segment, merge_plain
from ds4py.chat.template import ChatTemplate, check_effort
from ds4py.chat.tools import Tools, calls_block, declaration, in_call_order
from ds4py.errors import RequestError

JOIN: Final = "\n\n"
"""The text between messages that share a marker, and between system texts."""


def render(
    messages: Sequence[Message | Mapping[str, object]],
    *,
    thinking: bool = False,
    effort: str | None = None,
    drop_reasoning: bool = True,
    template: ChatTemplate | None = None,
    tools: Tools | None = None,
) -> list[Segment]:
    """Lays out a conversation, up to where the answer begins.

    - thinking: let the model think before it answers.
    - effort: "high", "max" or None; how long to think. Its words come from `template`.
    - drop_reasoning: leave out the reasoning of assistant turns before the last user turn, and with
      it the developer messages there; both only while thinking, as in training. Without thinking no
      reasoning is laid out at all. With tools nothing is left out, so that the thoughts behind calls stay.
    - template: the chat template of the model's file, for the words of `effort` and `tools`.
    - tools: what the model may call, `{"type": "function", "function": {"name": ..., ...}}` each.

    System messages are gathered at the start, wherever they stand. Raises RequestError for messages
    that the layout has no place for, and FormatError for a template that cannot be read.
    """
    talk = read_messages(messages)
    system = JOIN.join(message.content for message in talk if message.role == "system")
    opening = [Segment(BOS, True), Segment(effort_text(effort, thinking, template) + system, False)]
    if tools:
        opening += [Segment(JOIN, False), *declaration(tools, template)]
    turns = in_call_order([message for message in talk if message.role != "system"])
    drops = thinking and drop_reasoning and not tools
    if drops:
        turns = without_old_developers(turns)
    # A user turn is last, so all reasoning there is lies before it: dropping takes every one.
    body = conversation(turns, with_reasoning=thinking and not drops)
    return merge_plain([*opening, *body, Segment(THINK if thinking else END_THINK, True)])


def effort_text(effort: str | None, thinking: bool, template: ChatTemplate | None) -> str:
    """Returns the words that ask for an effort, empty if it is None. Raises RequestError."""
    if effort is None:
        return ""
    check_effort(effort)
    if not thinking:
        raise RequestError(f"effort {effort!r} is the effort of thinking: switch thinking on, or give none")
    if template is None:
        raise RequestError(f"effort {effort!r} needs the words of the model's chat template, but the file carries none")
    return template.effort(effort)


def without_old_developers(turns: Sequence[Message]) -> list[Message]:
    """Returns the turns without the developer messages before the last message, which is the user's turn."""
    return [message for message in turns if message.role != "developer" or message is turns[-1]]


def conversation(turns: Sequence[Message], with_reasoning: bool) -> Iterable[Segment]:
    """Yields the segments of the turns, and the marker that begins the answer."""
    in_user = False
    for message in turns:
        if message.role in USER_ROLES:
            yield Segment(JOIN, False) if in_user else Segment(USER, True)
            yield Segment(user_text(message), False)
        elif message.role == "latest_reminder":
            yield from (Segment(REMINDER, True), Segment(message.content, False))
        else:
            yield from assistant(message, with_reasoning)
        in_user = message.role in USER_ROLES
    yield Segment(ASSISTANT, True)


def user_text(message: Message) -> str:
    """Returns the text of a message in a user turn; a tool's result stands in tags."""
    return f"<tool_result>{message.content}</tool_result>" if message.role == "tool" else message.content


def assistant(message: Message, with_reasoning: bool) -> Iterable[Segment]:
    """Yields the segments of an assistant's turn; without its reasoning, it begins with a bare `</think>`."""
    yield Segment(ASSISTANT, True)
    if with_reasoning:
        yield from (Segment(THINK, True), Segment(message.reasoning_content or "", False))
    yield from (Segment(END_THINK, True), Segment(message.content, False))
    if message.tool_calls:
        yield from calls_block(message.tool_calls)
    yield Segment(EOS, True)
