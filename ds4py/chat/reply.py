"""A parser that divides an answer into reasoning, content and tool calls as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ds4py.chat.dsml import CLOSE, CLOSE_INVOKE, CLOSE_PARAMETER, INVOKE, OPEN, PARAMETER, CallReader, Malformed
from ds4py.chat.events import (
    Content,
    Event,
    Reasoning,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
    message_of,
)
from ds4py.chat.markers import DSML, END_THINK, THINK
from ds4py.chat.messages import Message
from ds4py.chat.scanning import partial_match_length, split_at_first

__all__ = [
    "BEFORE_CALLS",
    "Content",
    "Event",
    "Reasoning",
    "ReplyParser",
    "ToolCallArguments",
    "ToolCallEnd",
    "ToolCallStart",
    "message_of",
    "parse_reply",
]

BEFORE_CALLS: Final = "\n\n"
"""The text between content and calls; it belongs to neither."""

LONGEST_TAG: Final = 4096
"""Characters of a tag, so that looking for its end takes bounded time."""


class ReplyParser:
    """Turns the text of an answer into events, in as many pushes as one likes.

    The events of each kind say the same, however the text is divided. They lose nothing: besides the markers that are
    understood, and white space next to them, every character comes out as reasoning, content or part of a call.

    Args:
        thinking: the prompt has opened the thinking, so that the text begins inside it. An answer that begins with
            `<think>` is thinking in any case.
        tools: tool calls are looked for. Otherwise they are content like anything else.

    Thinking ends at `</think>`, or where calls begin; without either everything is reasoning.

    A call is given out when it is whole and valid, so that nobody acts on half of one. Where a block of calls leaves
    the form that `ds4py.chat.dsml` describes (an unknown or an endless tag, a parameter that comes twice,
    `string="false"` with what is no JSON, a text that ends inside), the rest of the answer is content as it was
    written, from after the last whole call of the block on, else from the beginning of the block. An end in the
    block's last tag completes it.
    """

    def __init__(self, *, thinking: bool, tools: bool) -> None:
        self._tools = tools
        self._then = self._thinking if thinking else self._content
        self._state: Callable[[], bool] = self._start
        self._text = ""  # not looked at yet, or not enough to decide
        self._events: list[Event] = []
        self._raw: list[str] = []  # of the block, since the last whole call
        self._value: list[str] = []
        self._parameter = ("", False)
        self._call = CallReader("")
        self._index = 0
        self._first = 0  # call of the block

    def push(self, text: str) -> list[Event]:
        """Returns the events that this text completes."""
        self._text += text
        return self._run()

    def finish(self) -> list[Event]:
        """Returns the last events, from the text that was held back."""
        if self._state == self._start:
            self._state = self._then
        return [*self._run(), *self._rest()]

    def _run(self) -> list[Event]:
        try:
            while self._state():
                pass
        except Malformed:
            self._give_up()
        events, self._events = self._events, []
        return events

    def _rest(self) -> Iterable[Event]:
        """Yields the text that the last state held back."""
        whole = self._state == self._between and self._index > self._first and CLOSE.startswith(self._text)
        text = "" if whole else "".join(self._raw) + self._text
        self._text, self._raw = "", []
        if text:
            yield Reasoning(text) if self._state == self._thinking else Content(text)

    # States: each looks at the text, and says whether the next one, or itself again, can go on with the rest.

    def _start(self) -> bool:
        if self._text.startswith(THINK):
            self._text = self._text[len(THINK) :]
            self._state = self._thinking
        elif not THINK.startswith(self._text):
            self._state = self._then
        else:
            return False
        return True

    def _thinking(self) -> bool:
        shown, mark, self._text = split_at_first(self._text, (END_THINK, OPEN) if self._tools else (END_THINK,))
        if mark == END_THINK:
            self._emit(Reasoning(shown))
            self._state = self._content
        else:
            self._emit(Reasoning(self._before_calls(shown, mark)))
        return bool(mark)

    def _content(self) -> bool:
        shown, mark, self._text = split_at_first(self._text, (OPEN,) if self._tools else ())
        self._emit(Content(self._before_calls(shown, mark)))
        return bool(mark)

    def _before_calls(self, shown: str, mark: str) -> str:
        """`shown` less the line ends that belong to the calls after it, or may turn out to."""
        if not self._tools:
            return shown
        kept = shown[: len(shown) - ends(shown)]
        if mark:
            self._raw = [shown[len(kept) :], mark]
            self._first = self._index
            self._state = self._between
        else:
            self._text = shown[len(kept) :] + self._text
        return kept

    def _between(self) -> bool:
        """Reads a tag in the block, outside of calls."""
        tag = self._tag()
        if tag is None:
            return False
        if tag == CLOSE and self._index > self._first:
            self._raw = []
            self._state = self._content
        elif found := INVOKE.fullmatch(tag):
            self._call = CallReader(found[1])
            self._state = self._inside
        else:
            raise Malformed(tag)
        return True

    def _inside(self) -> bool:
        """Reads a tag in a call, outside of parameters."""
        tag = self._tag()
        if tag is None:
            return False
        if tag == CLOSE_INVOKE:
            self._emit_call()
            self._state = self._between
        elif found := PARAMETER.fullmatch(tag):
            self._parameter = found[1], found[2] == "true"
            self._state = self._in_value
        else:
            raise Malformed(tag)
        return True

    def _in_value(self) -> bool:
        shown, mark, self._text = split_at_first(self._text, (CLOSE_PARAMETER,))
        self._value.append(shown)
        self._raw += (shown, mark)
        if not mark:
            return False
        value, self._value = "".join(self._value), []
        name, is_string = self._parameter
        self._call.add(name, value, is_string)
        self._state = self._inside
        return True

    def _tag(self) -> str | None:
        """Returns the next tag, or None if it is not complete. Raises Malformed for text that cannot become a tag."""
        tag = self._text.lstrip()
        self._raw.append(self._text[: len(self._text) - len(tag)])
        self._text = tag
        if not any(tag.startswith(start[: len(tag)]) for start in (f"<{DSML}", f"</{DSML}")):
            raise Malformed(tag)
        end = tag.find(">") + 1
        while end and tag.count('"', 0, end) % 2:  # inside a name
            end = tag.find(">", end) + 1
        if (end or len(tag)) > LONGEST_TAG:
            raise Malformed(tag)
        if not end:
            return None
        self._raw.append(tag[:end])
        self._text = tag[end:]
        return tag[:end]

    def _emit(self, event: Reasoning | Content) -> None:
        if event.text:
            self._events.append(event)

    def _emit_call(self) -> None:
        index, call = self._index, self._call
        self._events += (ToolCallStart(index, call.name), ToolCallArguments(index, call.arguments), ToolCallEnd(index))
        self._index += 1
        self._raw = []

    def _give_up(self) -> None:
        """Treats the rest of the answer as content."""
        self._text = "".join(self._raw) + self._text
        self._raw = []
        self._state = self._plain
        self._plain()

    def _plain(self) -> bool:
        self._emit(Content(self._text))
        self._text = ""
        return False


def ends(text: str) -> int:
    """Returns how many line ends at the end of a text may belong to calls that follow."""
    return len(BEFORE_CALLS) if text.endswith(BEFORE_CALLS) else partial_match_length(text, BEFORE_CALLS)


def parse_reply(text: str, *, thinking: bool, tools: bool) -> Message:
    """Parses a whole answer into a message; its calls have no ids. The arguments are those of `ReplyParser`."""
    parser = ReplyParser(thinking=thinking, tools=tools)
    return message_of([*parser.push(text), *parser.finish()])
