"""The policy `staged`: two proposals, then three, then all."""

from __future__ import annotations

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.stats import Cycle

START, NEXT = 2, 3


class Staged(DraftLengthPolicy):
    """Starts with 2, takes 3 after a cycle that accepted all, and `ceiling` after two such cycles in a row (ds4).

    After a cycle with a rejection it starts again. Raises RequestError for a ceiling outside 2 to 15.
    """

    def __init__(self, ceiling: int = MAX_DRAFT_LENGTH) -> None:
        if ceiling not in range(START, MAX_DRAFT_LENGTH + 1):
            raise RequestError(f"the ceiling is {ceiling}, wanted {START} to {MAX_DRAFT_LENGTH} proposals")
        self.ceiling = ceiling
        self._full = 0

    def start(self) -> Staged:
        """Returns a policy that starts with 2 again."""
        return Staged(self.ceiling)

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the draft length after so many fully accepted cycles in a row."""
        return (START, min(NEXT, self.ceiling), self.ceiling)[min(self._full, 2)]

    def observe(self, cycle: Cycle) -> None:
        """Counts fully accepted cycles in a row; cycles without proposals do not count."""
        if cycle.draft_length:
            self._full = self._full + 1 if cycle.accepted == cycle.draft_length else 0
