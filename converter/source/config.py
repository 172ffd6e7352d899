"""The configuration of a checkpoint, checked, in one struct for both ways of writing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Yarn:
    """Scaling of the compressed layers' rotary embedding."""

    factor: float
    original_context: int
    beta_fast: float
    beta_slow: float


@dataclass(frozen=True)
class DSpark:
    """A drafter: proposals in a block, the id that fills it, tapped target layers (from 0, outputs), Markov rank."""

    block: int
    noise: int
    taps: tuple[int, ...]
    rank: int


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a target; `ratios` and the like have one entry a layer."""

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
