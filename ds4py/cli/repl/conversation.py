"""Keeps a conversation in one session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ds4py.chat import ChatTemplate, Event, ReplyParser, encode_chat, encode_turn
from ds4py.chat.markers import ASSISTANT, BOS, END_THINK, EOS, THINK, USER
from ds4py.chat.template import EFFORTS
from ds4py.errors import FormatError, RequestError

if TYPE_CHECKING:
    from ds4py import Engine, Session, Tokenizer

MARKERS: Final = (BOS, USER, ASSISTANT, THINK, END_THINK, EOS)
"""The tokens of the chat layout that a turn may need."""


class Conversation:
    """A conversation whose turns extend the state of one session. No token is evaluated twice.

    Reasoning of earlier turns stays in the state, while the chat layout would drop it by default. The tokens in the
    state are the only record of the conversation.

    Attributes:
        session: the session of the conversation; `load` replaces it.
        system: the system text, or None.
        thinking: whether the model thinks before its next answers.
        effort: the effort of thinking, for a conversation that begins with it.
    """

    def __init__(
        self, engine: Engine, session: Session, *, system: str | None, thinking: bool, effort: str | None = None
    ) -> None:
        self._engine = engine
        self.session = session
        self.system = system
        self.thinking = thinking
        self.effort = effort

    def check(self) -> None:
        """Raises RequestError if the vocabulary lacks a token of the chat layout, or for an unknown effort."""
        if missing := [each for each in MARKERS if self._engine.tokenizer.token_id(each) is None]:
            raise RequestError(
                f"this model's vocabulary lacks {', '.join(missing)}, which a chat needs: continue plain text with "
                "ds4py generate"
            )
        self.turn("")

    def reply(self, text: str, **options: Any) -> Iterator[Event]:
        """Yields the events of the answer to a message. `options` are those of `Session.generate`.

        The message is in the state as soon as the first event comes. If the caller drops the iterator, or an error ends
        it, the state holds the answer so far. If the evaluation of the message was stopped, the state is as before the
        message.
        """
        parser = ReplyParser(thinking=self.thinking, tools=False)
        for piece in self.session.generate(self.turn(text), **options):
            yield from parser.push(piece.text)
        yield from parser.finish()

    def turn(self, text: str) -> list[int]:
        """Returns the token ids that a message adds to the state."""
        tokenizer, tokens = self._engine.tokenizer, self.session.history().tolist()
        if tokens:
            opened, closed = (last(tokens, tokenizer.token_id(marker)) for marker in (THINK, END_THINK))
            ended = tokens[-1] == tokenizer.token_id(EOS)
            return encode_turn(tokenizer, text, thinking=self.thinking, in_thought=opened > closed, ended=ended)
        messages = [{"role": "user", "content": text}]
        if self.system:
            messages.insert(0, {"role": "system", "content": self.system})
        effort = self.effort if self.thinking else None
        return encode_chat(tokenizer, messages, thinking=self.thinking, effort=effort)

    def undo(self) -> bool:
        """Removes the latest message and its answer. Returns False if there is none."""
        tokens, user = self.session.history().tolist(), self._engine.tokenizer.token_id(USER)
        at = last(tokens, user)
        if at < 0:
            return False
        self.session.rewind(at if user in tokens[:at] else 0)
        return True

    def restart(self) -> None:
        """Removes everything from the state. The system text stays for the next message."""
        self.session.rewind(0)

    def save(self, path: str) -> None:
        """Writes the state to a file. Raises RequestError if it is empty."""
        if not self.session.position:
            raise RequestError("there is nothing to save yet")
        self.session.save(path)

    def load(self, path: str) -> None:
        """Replaces the conversation by that of a file which `save` wrote with this model."""
        loaded = self._engine.load_session(path)
        self.session.close()
        self.session = loaded
        self.system = system_of(self._engine.tokenizer, loaded.history().tolist())


def system_of(tokenizer: Tokenizer, tokens: list[int]) -> str | None:
    """Returns the system text of a conversation without the words for an effort, or None if it has none."""
    user = tokenizer.token_id(USER)
    if user not in tokens:
        return None
    text = tokenizer.decode(tokens[1 : tokens.index(user)])
    if tokenizer.chat_template is not None:
        with suppress(RequestError, FormatError):  # a template without efforts has no words to remove
            for level in EFFORTS:
                text = text.removeprefix(ChatTemplate(tokenizer.chat_template).effort(level))
    return text or None


def last(tokens: list[int], token: int | None) -> int:
    """Returns the last index of a token, or -1."""
    return next((place for place in reversed(range(len(tokens))) if tokens[place] == token), -1)
