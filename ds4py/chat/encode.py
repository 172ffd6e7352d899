"""A conversation as token ids."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ds4py.chat.layout import render
from ds4py.chat.markers import ASSISTANT, DSML, END_THINK, EOS, THINK, USER
from ds4py.chat.messages import Message
from ds4py.chat.segments import Segment
from ds4py.chat.template import ChatTemplate
from ds4py.chat.tools import Tools
from ds4py.errors import RequestError


class ChatTokenizer(Protocol):
    """The methods of a tokenizer that this module calls; `ds4py.tokenizer.Tokenizer` has them."""

    @property
    def chat_template(self) -> str | None:
        """The Jinja source of the file's template."""

    def token_id(self, text: str) -> int | None:
        """Returns the id of the added token with this text, or None."""

    def encode(self, text: str, *, add_bos: bool | None = None, parse_special: bool = True) -> list[int]:
        """Returns the ids of a text."""


def encode_chat(
    tokenizer: ChatTokenizer,
    messages: Sequence[Message | Mapping[str, object]],
    *,
    thinking: bool = False,
    effort: str | None = None,
    drop_reasoning: bool = True,
    template: ChatTemplate | None = None,
    tools: Tools | None = None,
    parse_user_special: bool = False,
) -> list[int]:
    """Returns the ids of a conversation in the official layout, begin-of-sequence token included.

    The options are those of `render`; `template` defaults to the one of the tokenizer's file.

    A marker that somebody writes into a message (`<｜User｜>`, `</think>`) stays text. The official encoder
    lets it become the token, so that a message can forge turns; `parse_user_special` does the same,
    for messages from a trusted source. Ids differ between the two for such messages only.

    Raises RequestError as `render` and `encode` do, and where the vocabulary lacks a marker of the layout.
    """
    if template is None and tokenizer.chat_template is not None:
        template = ChatTemplate(tokenizer.chat_template)
    segments = render(
        messages, thinking=thinking, effort=effort, drop_reasoning=drop_reasoning, template=template, tools=tools
    )
    return ids_of(tokenizer, segments, parse_user_special)


def encode_turn(
    tokenizer: ChatTokenizer, text: str, *, thinking: bool = False, in_thought: bool = False, ended: bool = False
) -> list[int]:
    """The ids that a user's next message adds to a conversation which has been evaluated, answer included.

    So what has been evaluated stays as it is, reasoning of earlier turns included: the layout of `encode_chat` with
    `drop_reasoning` off.

    Args:
        text: the message; markers in it stay text.
        thinking: let the model think before it answers.
        in_thought: the last answer was cut off before its thinking had ended.
        ended: the last answer ends with the end-of-sequence token already.

    Raises RequestError where the vocabulary lacks a marker of the layout.
    """
    closing = [Segment(END_THINK, True)] if in_thought else []
    end = [] if ended else [Segment(EOS, True)]
    opening = Segment(THINK if thinking else END_THINK, True)
    turn = [Segment(USER, True), Segment(text, False), Segment(ASSISTANT, True), opening]
    return ids_of(tokenizer, [*closing, *end, *turn], parse_special=False)


def ids_of(tokenizer: ChatTokenizer, segments: Iterable[Segment], parse_special: bool) -> list[int]:
    """Returns the ids of a prompt's segments."""
    ids: list[int] = []
    for text, is_template in segments:
        if is_template:
            ids += marker(tokenizer, text)
        else:
            ids += tokenizer.encode(text, add_bos=False, parse_special=parse_special)
    return ids


def marker(tokenizer: ChatTokenizer, text: str) -> list[int]:
    """Returns the ids of a marker, which is one token.

    Raises RequestError where there is none; only that of calls is then its characters, because small vocabularies
    (the embedded pair's) know chats without it.
    """
    token = tokenizer.token_id(text)
    if token is None and text == DSML:
        return tokenizer.encode(text, add_bos=False)
    if token is None:
        raise RequestError(f"the chat layout needs the token {text}, which this vocabulary lacks: give a plain prompt")
    return [token]
