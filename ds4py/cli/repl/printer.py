"""Prints the answers of a conversation, with the reasoning set apart."""

from __future__ import annotations

import os
import sys
from typing import Final, TextIO

from ds4py.chat import Content, Event, Reasoning

DIM: Final = "\x1b[2m"
NORMAL: Final = "\x1b[0m"
CONTROLS: Final = (
    {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"}
    | {0x7F: 0x2421}
    | {code: 0xFFFD for code in range(0x80, 0xA0)}
)
"""Visible replacements for control characters, because an answer must not control the terminal."""


class AnswerPrinter:
    """Prints answers to a stream.

    A terminal shows reasoning in dim text. Elsewhere, and with NO_COLOR, reasoning stands between `<think>` tags.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._terminal = self._out.isatty()
        self._styled = self._terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self._thinking = False

    def show(self, event: Event) -> None:
        """Prints one event of an answer."""
        if isinstance(event, Reasoning):
            self._switch(True)
            self._write(event.text)
        elif isinstance(event, Content):
            self._switch(False)
            self._write(event.text)

    def end(self) -> None:
        """Ends an answer, wherever it stopped."""
        self._switch(False)
        self._out.write("\n")
        self._out.flush()

    def _switch(self, thinking: bool) -> None:
        if thinking == self._thinking:
            return
        self._thinking = thinking
        if self._styled:
            self._out.write(DIM if thinking else NORMAL + "\n\n")
        else:
            self._out.write("<think>\n" if thinking else "\n</think>\n")

    def _write(self, text: str) -> None:
        self._out.write(text.translate(CONTROLS) if self._terminal else text)
        self._out.flush()
