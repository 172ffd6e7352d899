"""Sizes of the tiny pair, and how long it is trained."""

from __future__ import annotations

from dataclasses import dataclass

DOMAINS = ("code", "json", "tables", "docs", "prose")
"""Kinds of text, in the order of every table."""

MIXTURE = {"code": 0.34, "json": 0.2, "tables": 0.1, "docs": 0.2, "prose": 0.16}
"""Share of the training tokens that each domain gives."""

BOS, EOS, PAD, USER, ASSISTANT, THINK, END_THINK, NOISE = range(8)
"""Ids of the special tokens; NOISE fills the drafter's block behind the anchor."""


@dataclass(frozen=True)
class Shape:
    """A DeepSeek-V4, named as in its `config.json` where that has a name.

    `ratios` has one compression ratio a layer. The window of 128 tokens is the published one: several records of a
    JSON file fit, so that their schema can be copied.
    """

    vocab: int = 2048
    hidden: int = 192
    ratios: tuple[int, ...] = (0, 0, 4, 128, 4, 128)
    heads: int = 4
    head_size: int = 64
    rope_size: int = 32
    query_rank: int = 96
    output_groups: int = 2
    output_rank: int = 64
    window: int = 128
    rope_base: float = 10000.0
    compress_rope_base: float = 160000.0
    index_heads: int = 4
    index_size: int = 64
    index_top_k: int = 128
    hash_layers: int = 2
    experts: int = 8
    experts_used: int = 2
    expert_width: int = 128
    routed_scale: float = 1.5
    clamp: float = 10.0
    streams: int = 4
    sinkhorn_iterations: int = 20
    epsilon: float = 1e-6
    context: int = 4096

    @property
    def layers(self) -> int:
        return len(self.ratios)


@dataclass(frozen=True)
class DraftShape:
    """A DSpark drafter; its stages have the target's sizes. `taps` are target layers, whose outputs it reads."""

    stages: int = 2
    block: int = 5
    rank: int = 64
    taps: tuple[int, ...] = (1, 3, 5)


@dataclass(frozen=True)
class Phase:
    """A part of the target's training: until this share of its tokens, `batch` sequences of `length` a step."""

    until: float
    length: int
    batch: int


PHASES = (Phase(0.7, 256, 8), Phase(0.92, 512, 4), Phase(1.0, 1024, 2))
"""Short sequences first, where a token costs least."""

INDEXED = 512
"""From this sequence length on, the indexer's loss is added: before, there are too few entries to choose from."""


@dataclass(frozen=True)
class Budget:
    """How much is trained: target tokens, tokens that the target generates for the drafter, and drafter steps."""

    target_tokens: int
    rollout_tokens: int
    drafter_steps: int


FULL = Budget(8_000_000, 400_000, 3600)
"""About two hours on two cores without AVX-512."""
SMOKE = Budget(40_960, 6_000, 20)
"""For a look at whether everything runs, in minutes."""
