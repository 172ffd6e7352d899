"""Derives from the costs at one depth where speculation pays, and the speed to expect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ds4py.speculative.expected import best_width, break_even, emitted, monotone


@dataclass(frozen=True)
class DepthCosts:
    """The costs of steps at one depth, in milliseconds.

    Attributes:
        depth: tokens before the step.
        verify_ms: time of a verify by width, from 0 (the anchor alone) to the drafter's block. Without a drafter the
            last width is the length of a prompt lookup.
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
        """The survival from which each width from 1 on pays, or None if it never does.

        The survival is taken as equal at every position.
        """
        return break_even(self._curve, self.draft_ms or 0.0, self.plain_ms)

    def speed(self, survival: float) -> tuple[int, float]:
        """Returns the best width and its tokens per second, for a survival that is equal at every position.

        A width of 0 stands for plain decoding without a draft.
        """
        width, rate = best_width([survival] * (len(self._curve) - 1), self._curve, self.draft_ms or 0.0)
        return (width, 1000 * rate) if width and rate * self.plain_ms > 1 else (0, 1000 / self.plain_ms)

    def speed_at(self, width: int, survival: float) -> float:
        """Returns the tokens per second of a fixed width."""
        return 1000 * emitted([survival] * width)[-1] / ((self.draft_ms or 0.0) + self._curve[width])

    def as_dict(self) -> dict[str, float | int | Sequence[float | None] | None]:
        """Returns plain values."""
        return {
            "depth": self.depth,
            "verify_ms": list(self.verify_ms),
            "draft_ms": self.draft_ms,
            "plain_ms": self.plain_ms,
            "break_even": self.break_even,
        }
