"""The breaker: plain decoding for some cycles where too little is accepted (docs/dspark.md section 5.5)."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import DraftEstimate, DraftLengthPolicy
from ds4py.speculative.stats import Cycle


class Breaker(DraftLengthPolicy):
    """A policy around another one, which opens where too small a share of the proposals is accepted (FreeToken).

    Each time `proposals` proposals have been verified, the accepted share is compared with `acceptance`. Below it, the
    next `steps` cycles are plain (D61). In either case counting starts again.

    Args:
        inner: the policy that chooses while the breaker is closed.
        acceptance: the least share of accepted proposals, 0 to 1.
        proposals: how many verified proposals are counted before each comparison, 1 or more.
        steps: how many cycles are plain after it has opened, 1 or more.

    Raises RequestError for arguments out of range.
    """

    def __init__(
        self, inner: DraftLengthPolicy, acceptance: float = 0.60, proposals: int = 32, steps: int = 64
    ) -> None:
        if not 0 <= acceptance <= 1 or proposals < 1 or steps < 1:
            raise RequestError(
                f"breaker is {acceptance}/{proposals}/{steps}, wanted an acceptance from 0 to 1, and proposals and "
                "steps of 1 or more"
            )
        self.inner, self.acceptance, self.proposals, self.steps = inner, acceptance, proposals, steps
        self._verified = self._accepted = self._cooling = 0

    def start(self) -> Breaker:
        """Returns a closed breaker around a fresh inner policy."""
        return Breaker(self.inner.start(), self.acceptance, self.proposals, self.steps)

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns 0 while the breaker is open, and else what the inner policy chooses."""
        return 0 if self._cooling else self.inner.choose(estimate)

    def admit(self, estimate: DraftEstimate, confidence: Sequence[float]) -> int:
        """Returns what the inner policy admits."""
        return self.inner.admit(estimate, confidence)

    def observe(self, cycle: Cycle) -> None:
        """Counts the cycle's proposals, and opens or closes the breaker."""
        self._cooling = max(0, self._cooling - 1)
        self._verified += cycle.draft_length
        self._accepted += cycle.accepted
        self.inner.observe(cycle)
        if self._verified >= self.proposals:
            self._cooling = self.steps if self._accepted < self.acceptance * self._verified else 0
            self._verified = self._accepted = 0

    @property
    def rest(self) -> int:
        """The plain cycles that are left while the breaker is open, and else the inner policy's rest."""
        return self._cooling - 1 if self._cooling else self.inner.rest

    @property
    def trying(self) -> bool:
        """Whether the inner policy tries."""
        return self.inner.trying
