"""Answers as events, until tool calls can be read."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py.chat.markers import END_THINK


@dataclass(frozen=True)
class Reasoning:
    """Text of the model's thinking."""

    text: str


@dataclass(frozen=True)
class Content:
    """Text of the answer."""

    text: str


class PlainReply:
    """Everything is content."""

    def push(self, text: str) -> list[Reasoning | Content]:
        """The text."""
        return [Content(text)] if text else []

    def finish(self) -> list[Reasoning | Content]:
        """Nothing is held back."""
        return []


class ThinkingReply:
    """Reasoning up to the end of thinking, then content."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = True

    def push(self, text: str) -> list[Reasoning | Content]:
        """What is certain of the text so far."""
        if not self._thinking:
            return [Content(text)] if text else []
        self._held += text
        before, marker, after = self._held.partition(END_THINK)
        if marker:
            self._thinking, self._held = False, ""
            return [kind(part) for kind, part in ((Reasoning, before), (Content, after)) if part]
        keep = next(n for n in range(len(END_THINK), -1, -1) if self._held.endswith(END_THINK[:n]))
        shown, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return [Reasoning(shown)] if shown else []

    def finish(self) -> list[Reasoning | Content]:
        """What was held back."""
        held, self._held = self._held, ""
        return [Reasoning(held)] if held else []
