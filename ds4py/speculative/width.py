"""How many proposals a cycle verifies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ds4py.errors import RequestError

MOST = 15
"""Proposals that one verify can hold: the state has slack for 16 rows, and the anchor is the first of them."""


class Width(Protocol):
    """Chooses the width of each cycle.

    The choice is made before the drafter is asked, so that it cannot depend on what is proposed: verifying a proposal
    because of what it is would bias sampled output. What the cycle verifies is this, or less where fewer tokens were
    proposed or may still be emitted.
    """

    def choose(self) -> int:
        """The width of the next cycle, 0 (a plain step, nothing is drafted) to 15."""


@dataclass(frozen=True)
class Fixed:
    """The same width every cycle. Raises RequestError outside 0 to 15."""

    width: int = MOST

    def __post_init__(self) -> None:
        if not isinstance(self.width, int) or self.width not in range(MOST + 1):
            raise RequestError(f"width is {self.width!r}, wanted 0 to {MOST} proposals")

    def choose(self) -> int:
        """The width."""
        return self.width


def as_width(width: int | Width | None) -> Width:
    """A number is a fixed width, None as many proposals as there are. Raises RequestError for what is neither."""
    if width is None:
        return Fixed()
    if hasattr(width, "choose"):
        return width
    return Fixed(width)
