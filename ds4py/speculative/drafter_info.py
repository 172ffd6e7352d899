"""A description of the drafter that an engine has loaded, and the size of its draft vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from ds4py import _native

DRAFT_VOCAB = 1024
"""The default size of a draft vocabulary: the largest that costs hardly more than a small one
(`bench/draft_vocabulary.py`)."""
SMALL_VOCABULARY = 16384
"""The largest vocabulary that is drawn from as a whole, because choosing from it saves nothing."""


def default_draft_vocab(vocabulary: int) -> int:
    """Returns the default number of candidates at each position for a vocabulary of so many tokens; 0 is all."""
    return DRAFT_VOCAB if vocabulary > SMALL_VOCABULARY else 0


@dataclass(frozen=True)
class DrafterInfo:
    """The properties of a loaded drafter.

    Attributes:
        path: the path of its file.
        contract: how the file is stored: dflash, lucebox, ds4, dspark-only or relayout (docs/dspark.md section 1.2).
        stages: the number of draft stages.
        block: the number of proposals of one draft.
        rank: the rank of the Markov head; 0 is no Markov head.
        taps: the target layers, counted from 0, whose outputs it reads.
        noise: the token id that fills a draft block.
        confidence: whether it has a confidence head.
        bytes: the bytes of its weights in memory.
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
        """Reads the properties of a loaded drafter whose file is `path`."""
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
