"""What the drafter that an engine has loaded is, and how many candidates it proposes from."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py import _native

SHORTLIST, SMALL_VOCABULARY = 1024, 16384
"""Candidates of each position: the most that cost no more than a few do (`bench/shortlist.py`). A small vocabulary is
not worth choosing from."""


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
