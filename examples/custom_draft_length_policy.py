"""A draft length policy of your own: one proposal more than the cycle before accepted."""

from __future__ import annotations

import ds4py
from ds4py.speculative import Cycle, DraftEstimate, DraftLengthPolicy


class Latest(DraftLengthPolicy):
    """Takes one proposal more than the latest cycle accepted."""

    def __init__(self) -> None:
        self._draft_length = 1

    def start(self) -> Latest:
        """Returns a fresh policy for a request."""
        return Latest()

    def choose(self, estimate: DraftEstimate) -> int:
        """Returns the draft length from earlier cycles only, so that the text stays exact."""
        return self._draft_length

    def observe(self, cycle: Cycle) -> None:
        """Remembers what the cycle accepted."""
        self._draft_length = cycle.accepted + 1


with ds4py.Engine() as engine, engine.session() as session:
    for piece in session.generate(
        "def quicksort(", max_tokens=64, sampling=ds4py.Sampling(seed=7), draft_length=Latest()
    ):
        print(piece.text, end="", flush=True)
    print(f"\n{session.stats.speculation.emitted_per_cycle:.2f} tokens a cycle")
