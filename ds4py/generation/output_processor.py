"""Turns generated tokens into text and decides where the text ends."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.generation.piece import Piece
from ds4py.generation.stop_strings import StopStrings
from ds4py.tokenizer import Tokenizer


class OutputProcessor:
    """Takes the tokens of a generation, several at a time, until a stop token, a stop string or `limit` tokens.

    Attributes:
        kept: the number of tokens so far that belong in the state, because their text is part of the output.
    """

    def __init__(self, tokenizer: Tokenizer, stops: StopStrings, limit: int) -> None:
        self._tokenizer = tokenizer
        self._stop_ids = tokenizer.stop_ids
        self._decoder = tokenizer.detokenizer()
        self._stops = stops
        self._limit = limit
        self._tokens: list[int] = []
        self._shown: list[str] = []
        self.kept = 0

    @property
    def remaining(self) -> int:
        """The number of tokens that may still be generated."""
        return self._limit - len(self._tokens)

    def push(self, tokens: Sequence[int], last: bool = False) -> Piece:
        """Returns the piece that the next tokens make. Tokens after the end of the text are dropped.

        Args:
            tokens: at most `remaining` ids.
            last: whether the text ends after them, because a grammar is complete.
        """
        text = ""
        may_stop = self._stops.sought or not self._stop_ids.isdisjoint(tokens)
        for i, token in enumerate(tokens if may_stop else ()):
            if token in self._stop_ids:
                return Piece(text + self._flush(), tuple(tokens[:i]), "stop")
            text += self._show((token,))
            if self._stops.found:
                self.kept = self._kept_before_stop()
                return Piece(text, tuple(tokens[: i + 1]), "stop", stop_string=self._stops.found)
            self.kept = len(self._tokens)
        if not may_stop:
            text = self._show(tokens)
            self.kept = len(self._tokens)
        if last:
            return Piece(text + self._flush(), tuple(tokens), "stop")
        if self.remaining:
            return Piece(text, tuple(tokens))
        return Piece(text + self._flush(), tuple(tokens), "length")

    def _show(self, tokens: Sequence[int]) -> str:
        self._tokens += tokens
        text = self._stops.push(self._decoder.push(tokens))
        self._shown.append(text)
        return text

    def _flush(self) -> str:
        return self._stops.push(self._decoder.flush()) + self._stops.flush()

    def _kept_before_stop(self) -> int:
        """Returns how many tokens lie wholly before the stop string that the last token has completed."""
        kept, shown = len(self._tokens) - 1, "".join(self._shown)
        while kept and not shown.startswith(self._tokenizer.decode(self._tokens[:kept])):
            kept -= 1
        return kept
