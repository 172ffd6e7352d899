"""Reads messages at a terminal, with line editing, history and several lines for each message."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from platformdirs import user_state_path
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def messages(status: Callable[[], str]) -> Iterator[str]:
    """Yields the messages that the user enters, until Ctrl-D. `status` gives the text of the line below the prompt."""
    prompt: PromptSession[str] = PromptSession(
        "> ", multiline=True, key_bindings=keys(), history=history(), bottom_toolbar=status
    )
    while True:
        try:
            yield prompt.prompt()
        except EOFError:
            return


def keys() -> KeyBindings:
    """Binds the keys: Enter sends, Alt-Enter begins a new line, Ctrl-C clears the input.

    Ctrl-C does not leave the program. Otherwise a press that comes just after the end of an answer would end the
    conversation.
    """
    bound = KeyBindings()

    @bound.add("enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bound.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bound.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            run_in_terminal(lambda: print("Ctrl-D or /quit leaves", file=sys.stderr))

    return bound


def history() -> History:
    """Returns the history in the user's state directory, or a temporary one if that directory cannot be written."""
    path = user_state_path("ds4py") / "chat-history"
    return FileHistory(str(path)) if writable(path) else InMemoryHistory()


def writable(path: Path) -> bool:
    """Tells whether a file can be written at a path. Creates its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError:
        return False
    return True
