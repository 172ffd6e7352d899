"""Steps aside where little is accepted."""

from __future__ import annotations

from collections.abc import Sequence

from ds4py.errors import RequestError
from ds4py.speculative.draft_length.base import Offer, Width
from ds4py.speculative.stats import Cycle


class Breaker(Width):
    """Another policy, with plain decoding for a while where less than a share of the proposals is accepted (FreeToken).

    Each time `proposals` have been verified, the share that was accepted is looked at; below `acceptance`, the next
    `steps` cycles are plain. Either way counting starts again. Raises RequestError for arguments out of range.
    """

    def __init__(self, inner: Width, acceptance: float = 0.60, proposals: int = 32, steps: int = 64) -> None:
        if not 0 <= acceptance <= 1 or proposals < 1 or steps < 1:
            raise RequestError(
                f"breaker is {acceptance}/{proposals}/{steps}, wanted an acceptance from 0 to 1, and proposals and "
                "steps of 1 or more"
            )
        self.inner, self.acceptance, self.proposals, self.steps = inner, acceptance, proposals, steps
        self._verified = self._accepted = self._cooling = 0

    def start(self) -> Breaker:
        """A closed one."""
        return Breaker(self.inner.start(), self.acceptance, self.proposals, self.steps)

    def choose(self, offer: Offer) -> int:
        """0 while it is open."""
        return 0 if self._cooling else self.inner.choose(offer)

    def admit(self, offer: Offer, confidence: Sequence[float]) -> int:
        """As the other policy."""
        return self.inner.admit(offer, confidence)

    def observe(self, cycle: Cycle) -> None:
        """Counts, and opens or closes."""
        self._cooling = max(0, self._cooling - 1)
        self._verified += cycle.width
        self._accepted += cycle.accepted
        self.inner.observe(cycle)
        if self._verified >= self.proposals:
            self._cooling = self.steps if self._accepted < self.acceptance * self._verified else 0
            self._verified = self._accepted = 0

    @property
    def rest(self) -> int:
        """What is left of the plain cycles, or as the other policy."""
        return self._cooling - 1 if self._cooling else self.inner.rest

    @property
    def trying(self) -> bool:
        """As the other policy."""
        return self.inner.trying
