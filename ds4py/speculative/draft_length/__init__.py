"""How many proposals a cycle verifies: one policy a file, behind one interface."""

from __future__ import annotations

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.auto import Auto
from ds4py.speculative.draft_length.base import MOST, Width
from ds4py.speculative.draft_length.breaker import Breaker
from ds4py.speculative.draft_length.confidence import Confidence
from ds4py.speculative.draft_length.ewma import Ewma
from ds4py.speculative.draft_length.fixed import Fixed
from ds4py.speculative.draft_length.staged import Staged

__all__ = ["MOST", "POLICIES", "Auto", "Breaker", "Confidence", "Ewma", "Fixed", "Staged", "Width", "as_width"]

POLICIES: dict[str, type[Width]] = {"auto": Auto, "confidence": Confidence, "ewma": Ewma, "staged": Staged}
"""Policies that have a name."""


def as_width(width: int | str | Width) -> Width:
    """A number is a fixed width, a name the policy of that name. Raises RequestError for what is neither."""
    if isinstance(width, str):
        if width not in POLICIES:
            raise RequestError(f"width is {width!r}, wanted a number, {', '.join(map(repr, POLICIES))} or a policy")
        return POLICIES[width]()
    return width if isinstance(width, Width) else Fixed(width)
