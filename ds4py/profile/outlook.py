"""What the costs at one depth mean: where speculation pays, and what speed to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ds4py.speculative.cost_model import best_draft_length, break_even, expected_tokens, monotone


@dataclass(frozen=True)
class Depth:
    """Costs at one depth, in milliseconds.

    Attributes:
        depth: tokens before the step.
        verify_ms: of a verify by draft length, from 0 (the anchor alone) to the drafter's block; without a drafter to
            what prompt lookup proposes.
        plain_ms: of a plain step in a session that has no drafter.
        draft_ms: of a block; None without a drafter.
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
        """The survival, alike at every position, from which each draft length >= 1 pays; None where it never does."""
        return break_even(self._curve, self.draft_ms or 0.0, self.plain_ms)

    def speed(self, survival: float) -> tuple[int, float]:
        """The best draft length at a survival that is alike at every position, and tokens a second there.

        0 is plain decoding, without a draft.
        """
        draft_length, rate = best_draft_length([survival] * (len(self._curve) - 1), self._curve, self.draft_ms or 0.0)
        return (draft_length, 1000 * rate) if draft_length and rate * self.plain_ms > 1 else (0, 1000 / self.plain_ms)

    def speed_at(self, draft_length: int, survival: float) -> float:
        """Tokens a second with a fixed draft length."""
        return (
            1000 * expected_tokens([survival] * draft_length)[-1] / ((self.draft_ms or 0.0) + self._curve[draft_length])
        )

    def as_dict(self) -> dict[str, float | int | Sequence[float | None] | None]:
        """Plain values."""
        return {
            "depth": self.depth,
            "verify_ms": list(self.verify_ms),
            "draft_ms": self.draft_ms,
            "plain_ms": self.plain_ms,
            "break_even": self.break_even,
        }
