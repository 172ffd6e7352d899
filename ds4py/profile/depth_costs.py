"""Derives from the costs at one depth where speculation pays, and the speed to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ds4py.speculative.cost_model import best_draft_length, break_even, expected_tokens, monotone


@dataclass(frozen=True)
class DepthCosts:
    """The costs of steps at one depth, in milliseconds.

    Attributes:
        depth: tokens before the step.
        verify_ms: time of a verify by draft length, from 0 (the anchor alone) to the drafter's block. Without a
            drafter the last draft length is the length of a prompt lookup.
        plain_ms: time of a plain step in a session without a drafter.
        draft_ms: time of drafting a block; None without a drafter.
    """

    depth: int
    verify_ms: tuple[float, ...]
    plain_ms: float
    draft_ms: float | None

    @cached_property
    def _curve(self) -> list[float]:
        return monotone(self.verify_ms)

    @property
    def break_even(self) -> list[float | None]:
        """The survival from which each draft length from 1 on pays, or None if it never does.

        The survival is taken as equal at every position.
        """
        return break_even(self._curve, self.draft_ms or 0.0, self.plain_ms)

    def speed(self, survival: float) -> tuple[int, float]:
        """Returns the best draft length and its tokens per second, for a survival that is equal at every position.

        A draft length of 0 stands for plain decoding without a draft.
        """
        draft_length, rate = best_draft_length([survival] * (len(self._curve) - 1), self._curve, self.draft_ms or 0.0)
        return (draft_length, 1000 * rate) if draft_length and rate * self.plain_ms > 1 else (0, 1000 / self.plain_ms)

    def speed_at(self, draft_length: int, survival: float) -> float:
        """Returns the tokens per second with a fixed draft length."""
        seconds = (self.draft_ms or 0.0) + self._curve[draft_length]
        return 1000 * expected_tokens([survival] * draft_length)[-1] / seconds

    def as_dict(self) -> dict[str, float | int | Sequence[float | None] | None]:
        """Returns plain values."""
        return {
            "depth": self.depth,
            "verify_ms": list(self.verify_ms),
            "draft_ms": self.draft_ms,
            "plain_ms": self.plain_ms,
            "break_even": self.break_even,
        }
