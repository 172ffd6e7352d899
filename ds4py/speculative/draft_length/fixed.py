"""The policy of a number: the same draft length every cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.deprecated import renamed_attributes
from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy

LONG = 1 << 30
"""More cycles than any request has."""


@dataclass(frozen=True)
class Fixed(DraftLengthPolicy):
    """Takes the same draft length every cycle; one beyond the drafter's block verifies the whole block.

    Raises RequestError for a draft length outside 0 to 15.
    """

    draft_length: int = MAX_DRAFT_LENGTH

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes({"width": "draft_length"})

    def __post_init__(self) -> None:
        if not isinstance(self.draft_length, int) or self.draft_length not in range(MAX_DRAFT_LENGTH + 1):
            raise RequestError(f"draft_length is {self.draft_length!r}, wanted 0 to {MAX_DRAFT_LENGTH} proposals")

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the draft length."""
        return self.draft_length

    @property
    def rest(self) -> int:
        """A number that no request reaches: a draft length of 0 is never asked for again."""
        return LONG
