"""Proposals of the model's own drafter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ds4py import _native
from ds4py.errors import RequestError
from ds4py.speculative.draft import Draft, DraftRequest

if TYPE_CHECKING:
    from ds4py.runtime.session import Session

SHORTLIST, SMALL_VOCABULARY = 1024, 16384
"""Candidates of each position: the most that cost no more than a few do (`bench/shortlist.py`). A small vocabulary is
not worth choosing from."""

Proposals = Literal["sampled", "greedy"]


def default_shortlist(vocabulary: int) -> int:
    """Candidates of each position for a vocabulary of so many tokens; 0 is all."""
    return SHORTLIST if vocabulary > SMALL_VOCABULARY else 0


@dataclass(frozen=True)
class DrafterInfo:
    """What a loaded drafter is.

    Attributes:
        path: its file.
        contract: how the file is stored: dflash, lucebox, ds4, dspark-only or relayout.
        stages: draft stages.
        block: proposals of one draft.
        rank: of the Markov head; 0 is none.
        taps: target layers, counted from 0, whose output it reads.
        noise: id that fills a block.
        confidence: whether it says how sure it is of its proposals.
        bytes: of its weights in memory.
    """

    path: str
    contract: str
    stages: int
    block: int
    rank: int
    taps: tuple[int, ...]
    noise: int
    confidence: bool
    bytes: int

    @classmethod
    def of(cls, path: str, native: _native.Drafter) -> DrafterInfo:
        """Asks a loaded drafter."""
        return cls(
            path=path,
            contract=native.contract,
            stages=native.stages,
            block=native.block,
            rank=native.rank,
            taps=tuple(native.taps),
            noise=native.noise,
            confidence=native.confidence,
            bytes=native.bytes,
        )

    def __str__(self) -> str:
        return (
            f"contract {self.contract}, {self.stages} stages, block {self.block}, rank {self.rank}, "
            f"taps {','.join(map(str, self.taps))}, noise {self.noise}, "
            f"confidence {'yes' if self.confidence else 'no'}, {self.bytes / 1e6:.1f} MB"
        )


class DSparkDrafter:
    """Drafts with the DSpark drafter that the session's engine has loaded.

    Args:
        shortlist: candidates of each position, the likeliest before the Markov bias; 0 is the whole vocabulary, None
            is `default_shortlist`. q is a distribution over these, so the choice costs acceptance but never exactness.
        proposals: "sampled" draws each proposal from q, the request's own policy applied to the drafter's logits.
            "greedy" proposes the likeliest token, and q is 1 at it: better where the target is surer than the drafter.
            The same for greedy requests.

    Raises RequestError for an argument out of range; `propose` raises it when the engine has no drafter.
    """

    name = "dspark"

    def __init__(self, shortlist: int | None = None, proposals: Proposals = "sampled") -> None:
        if shortlist is not None and shortlist < 0:
            raise RequestError(f"draft_vocab is {shortlist}, wanted a number of candidates, or 0 for all")
        if proposals not in ("sampled", "greedy"):
            raise RequestError(f"proposals is {proposals!r}, wanted 'sampled' or 'greedy'")
        self.shortlist = shortlist
        self.proposals = proposals

    @property
    def priced_as(self) -> str:
        """The name of its costs, which depend on its settings."""
        default = self.shortlist is None and self.proposals == "sampled"
        return self.name if default else f"{self.name}, {self.shortlist} {self.proposals}"

    def propose(self, session: Session, request: DraftRequest, width: int) -> Draft:
        """A whole block: what a shorter one would begin with differs, because its rows see each other."""
        if request.arg_max or self.proposals == "greedy":
            return session.draft(shortlist=self.shortlist)
        return session.draft(request.sampler, request.rng, shortlist=self.shortlist)
