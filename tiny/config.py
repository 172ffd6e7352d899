"""Defines the sizes of the tiny pair, and how long it is trained."""

from __future__ import annotations

from dataclasses import dataclass

DOMAINS = ("code", "json", "tables", "docs", "prose")
"""The kinds of text, in the order of every table."""

MIXTURE = {"code": 0.34, "json": 0.2, "tables": 0.1, "docs": 0.2, "prose": 0.16}
"""The share of training tokens that each domain gives."""

BOS, EOS, PAD, USER, ASSISTANT, THINK, END_THINK, NOISE = range(8)
"""Ids of the special tokens. NOISE fills the drafter's block behind the anchor."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a DeepSeek-V4, named as in its `config.json` where that has a name.

    `ratios` has one compression ratio for each layer. The window of 128 tokens is the published one. Several records of
    a JSON file fit into it, so their schema can be copied.
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
    """The sizes of a DSpark drafter. Its stages have the target's sizes, and it reads the outputs of layers `taps`."""

    stages: int = 2
    block: int = 5
    rank: int = 64
    taps: tuple[int, ...] = (1, 3, 5)


@dataclass(frozen=True)
class Phase:
    """A part of the target's training: `batch` sequences of `length` tokens a step, up to a share of all tokens."""

    until: float
    length: int
    batch: int


PHASES = (Phase(0.7, 256, 8), Phase(0.92, 512, 4), Phase(1.0, 1024, 2))
"""The phases of the target's training. Short sequences come first, because a token costs least in them."""

INDEXED = 512
"""The sequence length from which the indexer's loss is added. Shorter sequences have too few rows to choose from."""


@dataclass(frozen=True)
class Budget:
    """The amount of training: target tokens, generated tokens for the drafter, and drafter steps."""

    target_tokens: int
    rollout_tokens: int
    drafter_steps: int


FULL = Budget(8_000_000, 400_000, 3600)
"""A training of about two hours on two cores without AVX-512."""
SMOKE = Budget(40_960, 6_000, 20)
"""A training of minutes, which shows whether everything runs."""
