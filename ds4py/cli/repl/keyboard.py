"""Messages from a person at a terminal: line editing, history, several lines."""

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
    """What a person enters, until Ctrl-D. `status` is the line below."""
    prompt: PromptSession[str] = PromptSession(
        "> ", multiline=True, key_bindings=keys(), history=history(), bottom_toolbar=status
    )
    while True:
        try:
            yield prompt.prompt()
        except EOFError:
            return


def keys() -> KeyBindings:
    """Enter sends, Alt-Enter begins a line, Ctrl-C clears what was typed.

    Ctrl-C does not leave: pressed a moment after the end of the answer that it was meant for, it would lose everything.
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
    """Earlier messages, in the user's state directory; of this run only where that cannot be written."""
    path = user_state_path("ds4py") / "chat-history"
    return FileHistory(str(path)) if writable(path) else InMemoryHistory()


def writable(path: Path) -> bool:
    """Whether a file can be written there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError:
        return False
    return True
