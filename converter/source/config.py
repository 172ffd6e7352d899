"""Defines the configuration of a checkpoint, the same for every spelling of `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Yarn:
    """The YaRN scaling of the rotary embedding in layers that compress (docs/model.md, section 2.3)."""

    factor: float
    original_context: int
    beta_fast: float
    beta_slow: float


@dataclass(frozen=True)
class DSpark:
    """The sizes of a drafter.

    Attributes:
        block: the rows of a draft block.
        noise: the id of the noise token.
        taps: the tapped target layers, counted from 0 by their outputs.
        rank: the rank of the Markov head.
    """

    block: int
    noise: int
    taps: tuple[int, ...]
    rank: int


@dataclass(frozen=True)
class ModelConfig:
    """The hyperparameters of a target (docs/model.md, section 1). `ratios` has one entry for each layer."""

    layers: int
    hidden: int
    vocab: int
    context: int
    heads: int
    head_size: int
    rope_size: int
    query_rank: int
    output_groups: int
    output_rank: int
    window: int
    ratios: tuple[int, ...]
    draft_ratios: tuple[int, ...]
    rope_base: float
    compress_rope_base: float
    yarn: Yarn | None
    index_heads: int
    index_size: int
    index_top_k: int
    experts: int
    experts_used: int
    expert_width: int
    hash_layers: int
    normalise_weights: bool
    routed_scale: float
    clamp: float
    streams: int
    sinkhorn_iterations: int
    hc_epsilon: float
    norm_epsilon: float
    tied: bool
    token_ids: Mapping[str, int]
    dspark: DSpark | None
