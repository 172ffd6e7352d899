"""A drafter of your own, which proposes from a table of pairs. Proposals may be wrong; the text stays exact."""

from __future__ import annotations

from itertools import pairwise

import ds4py
from ds4py.speculative import Draft, DraftRequest, TargetSession


class Pairs:
    """Proposes after each token the one that followed it when it was seen last."""

    name = "pairs"

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns up to `draft_length` proposals for what follows the anchor; none is drawn, so q is 1 at each."""
        text = session.history().tolist()
        after = dict(pairwise(text))
        found: list[int] = []
        token = text[-1]
        while len(found) < draft_length and token in after:
            found.append(token := after[token])
        return Draft.point_mass(found)


with ds4py.Engine() as engine, engine.session() as session:
    pieces = session.generate(
        "[1, 2, 3, 1, 2, 3,", max_tokens=64, sampling=ds4py.Sampling(temperature=0), draft=Pairs()
    )
    print("".join(piece.text for piece in pieces))
    print(f"{session.stats.speculation.emitted_per_cycle:.2f} tokens a cycle")
