"""A grammar for the answer alone: whatever is thought before it is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ds4py.chat.markers import END_THINK
from ds4py.errors import RequestError
from ds4py.grammar.base import Constraint, Mask, Matcher, packed

if TYPE_CHECKING:
    from ds4py.tokenizer import Tokenizer


class AfterThinking:
    """Holds a generation to `constraint` from the token `</think>` on; before it everything but an end is allowed.

    For prompts that open the thinking. Raises RequestError where the vocabulary has no such token.
    """

    def __init__(self, tokenizer: Tokenizer, constraint: Constraint) -> None:
        end = tokenizer.token_id(END_THINK)
        if end is None:
            raise RequestError(f"a constraint after thinking needs the token {END_THINK}, which this vocabulary lacks")
        self._end = end
        self._constraint = constraint
        self._thoughts = packed(tokenizer.stop_ids, tokenizer.vocab_size, allowed=False)

    def start(self) -> AfterThinkingMatcher:
        """A matcher inside the thinking."""
        return AfterThinkingMatcher(self._constraint.start(), self._end, self._thoughts)


class AfterThinkingMatcher:
    """The state of a generation: in the reasoning, or in the constrained answer."""

    def __init__(self, answer: Matcher, end: int, thoughts: Mask) -> None:
        self._answer = answer
        self._end = end
        self._thoughts = thoughts
        self._seen = 0
        self._thought: int | None = None  # tokens up to the end of thinking

    def mask(self) -> Mask | None:
        """Returns the tokens that may follow, or None for all."""
        return self._thoughts if self._thought is None else self._answer.mask()

    def advance(self, token: int) -> None:
        """Appends a token."""
        self._seen += 1
        if self._thought is not None:
            self._answer.advance(token)
        elif token == self._end:
            self._thought = self._seen

    def rollback(self, count: int) -> None:
        """Takes back the last `count` tokens."""
        if self._thought is not None:
            self._answer.rollback(min(count, self._seen - self._thought))
        self._seen -= count
        if self._thought is not None and self._seen < self._thought:
            self._thought = None

    @property
    def complete(self) -> bool:
        """Whether nothing can follow."""
        return self._thought is not None and self._answer.complete
