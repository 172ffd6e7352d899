"""A draft length policy of one's own: as many proposals as were accepted in the cycle before, and one more."""

from __future__ import annotations

import ds4py
from ds4py.speculative import Cycle, DraftEstimate, DraftLengthPolicy


class Latest(DraftLengthPolicy):
    """One proposal more than stood in the latest cycle."""

    def __init__(self) -> None:
        self._draft_length = 1

    def start(self) -> Latest:
        """For a new request."""
        return Latest()

    def choose(self, estimate: DraftEstimate) -> int:
        """Before the proposals are known: it may look at past cycles only, so that the text stays exact."""
        return self._draft_length

    def observe(self, cycle: Cycle) -> None:
        """After a cycle."""
        self._draft_length = cycle.accepted + 1


with ds4py.Engine() as engine, engine.session() as session:
    for piece in session.generate(
        "def quicksort(", max_tokens=64, sampling=ds4py.Sampling(seed=7), draft_length=Latest()
    ):
        print(piece.text, end="", flush=True)
    print(f"\n{session.stats.speculation.emitted_per_cycle:.2f} tokens a cycle")
