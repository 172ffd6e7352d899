"""Policies that choose how many proposals a cycle verifies, one a file (docs/dspark.md section 5.2)."""

from __future__ import annotations

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.deprecated import renamed
from ds4py.errors import RequestError
from ds4py.speculative.draft_length.auto import Auto
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.draft_length.breaker import Breaker
from ds4py.speculative.draft_length.confidence import Confidence
from ds4py.speculative.draft_length.ewma import Ewma
from ds4py.speculative.draft_length.fixed import Fixed
from ds4py.speculative.draft_length.staged import Staged

__all__ = [
    "MAX_DRAFT_LENGTH",
    "POLICIES",
    "Auto",
    "Breaker",
    "Confidence",
    "DraftEstimate",
    "DraftLengthPolicy",
    "Ewma",
    "Fixed",
    "Staged",
    "as_draft_length",
]

POLICIES: dict[str, type[DraftLengthPolicy]] = {
    "auto": Auto,
    "confidence": Confidence,
    "ewma": Ewma,
    "staged": Staged,
}
"""The policies that can be asked for by a name."""

__getattr__ = renamed(
    __name__, {"MOST": "MAX_DRAFT_LENGTH", "Width": "DraftLengthPolicy", "as_width": "as_draft_length"}
)


def as_draft_length(draft_length: int | str | DraftLengthPolicy) -> DraftLengthPolicy:
    """Returns the policy that `draft_length` asks for: a number is a fixed length, a name the policy of that name.

    Raises RequestError for a number outside 0 to 15, for an unknown name, and for anything else.
    """
    if isinstance(draft_length, str):
        if draft_length not in POLICIES:
            names = ", ".join(map(repr, POLICIES))
            raise RequestError(f"draft_length is {draft_length!r}, wanted a number, {names} or a policy")
        return POLICIES[draft_length]()
    return draft_length if isinstance(draft_length, DraftLengthPolicy) else Fixed(draft_length)
