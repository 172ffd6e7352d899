"""What a conversation looks like: answers as they come, the thinking apart."""

from __future__ import annotations

import sys
from typing import Final, TextIO

from ds4py.chat import Content, Event, Reasoning

DIM: Final = "\x1b[2m"
NORMAL: Final = "\x1b[0m"
ESCAPE: Final = {0x1B: "␛", 0x9B: "␛"}
"""An answer must not move the cursor."""


class Screen:
    """Prints answers: on a terminal with dim thinking, elsewhere plain text with the thinking between its tags."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._terminal = self._out.isatty()
        self._thinking = False

    def show(self, event: Event) -> None:
        """A part of an answer."""
        if isinstance(event, Reasoning):
            self._switch(True)
            self._write(event.text)
        elif isinstance(event, Content):
            self._switch(False)
            self._write(event.text)

    def end(self) -> None:
        """The end of an answer, wherever it was."""
        self._switch(False)
        self._out.write("\n")
        self._out.flush()

    def _switch(self, thinking: bool) -> None:
        if thinking == self._thinking:
            return
        self._thinking = thinking
        if self._terminal:
            self._out.write(DIM if thinking else NORMAL + "\n\n")
        else:
            self._out.write("<think>\n" if thinking else "\n</think>\n")

    def _write(self, text: str) -> None:
        self._out.write(text.translate(ESCAPE) if self._terminal else text)
        self._out.flush()
