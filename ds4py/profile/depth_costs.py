"""What the costs at one depth mean: where speculation pays, and what speed to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ds4py.speculative.expected import best_width, break_even, emitted, monotone


@dataclass(frozen=True)
class DepthCosts:
    """Costs at one depth, in milliseconds.

    Attributes:
        depth: tokens before the step.
        verify_ms: of a verify by width, from 0 (the anchor alone) to the drafter's block; without a drafter to what
            prompt lookup proposes.
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
        """By width from 1: the survival, alike at every position, from which speculation pays; None where none does."""
        return break_even(self._curve, self.draft_ms or 0.0, self.plain_ms)

    def speed(self, survival: float) -> tuple[int, float]:
        """The best width at a survival that is alike at every position, and tokens a second there.

        0 is plain decoding, without a draft.
        """
        width, rate = best_width([survival] * (len(self._curve) - 1), self._curve, self.draft_ms or 0.0)
        return (width, 1000 * rate) if width and rate * self.plain_ms > 1 else (0, 1000 / self.plain_ms)

    def speed_at(self, width: int, survival: float) -> float:
        """Tokens a second with a fixed width."""
        return 1000 * emitted([survival] * width)[-1] / ((self.draft_ms or 0.0) + self._curve[width])

    def as_dict(self) -> dict[str, float | int | Sequence[float | None] | None]:
        """Plain values."""
        return {
            "depth": self.depth,
            "verify_ms": list(self.verify_ms),
            "draft_ms": self.draft_ms,
            "plain_ms": self.plain_ms,
            "break_even": self.break_even,
        }
