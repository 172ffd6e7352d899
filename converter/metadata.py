"""Builds the metadata that targets and drafters share (docs/formats.md lists the keys)."""

from __future__ import annotations

from pathlib import Path

from gguf import GGUFValueType as Kind

import ds4py

from .presets import Preset
from .source.config import ModelConfig
from .values import Metadata, array, f32, flag, text, u32

GATING_SQRT_SOFTPLUS = 4


def general(architecture: str, name: str, preset: Preset, source: Path) -> Metadata:
    """Returns the `general.*` keys: architecture, name, quantisation and origin."""
    return {
        "general.architecture": text(architecture),
        "general.type": text("model"),
        "general.name": text(name),
        "general.quantization_version": u32(2),
        "general.file_type": u32(int(preset.file_type)),
        "general.source.name": text(source.resolve().name),
        "general.converter": text(f"ds4py {ds4py.__version__}"),
    }


def target(config: ModelConfig) -> Metadata:
    """Returns the hyperparameters of a target."""
    prefix = "deepseek4."
    return {
        **hyperparameters(prefix, config, config.ratios, config.hash_layers),
        prefix + "embedding_length_out": u32(config.streams * config.hidden),
    }


def hyperparameters(prefix: str, c: ModelConfig, ratios: tuple[int, ...], hash_layers: int) -> Metadata:
    """Returns the keys of layers with these compression ratios, below `prefix`."""
    layers = len(ratios)
    values = {
        "vocab_size": u32(c.vocab),
        "context_length": u32(c.context),
        "embedding_length": u32(c.hidden),
        "block_count": u32(layers),
        **attention(c, ratios),
        **rope(c),
        "expert_count": u32(c.experts),
        "expert_used_count": u32(c.experts_used),
        "expert_shared_count": u32(1),
        "expert_feed_forward_length": u32(c.expert_width),
        "expert_gating_func": u32(GATING_SQRT_SOFTPLUS),
        "expert_weights_norm": flag(c.normalise_weights),
        "expert_weights_scale": f32(c.routed_scale),
        "hash_layer_count": u32(hash_layers),
        "swiglu_clamp_exp": array([c.clamp] * layers, Kind.FLOAT32),
        "swiglu_clamp_shexp": array([c.clamp] * layers, Kind.FLOAT32),
        "hyper_connection.count": u32(c.streams),
        "hyper_connection.sinkhorn_iterations": u32(c.sinkhorn_iterations),
        "hyper_connection.epsilon": f32(c.hc_epsilon),
    }
    return {prefix + key: value for key, value in values.items()}


def attention(c: ModelConfig, ratios: tuple[int, ...]) -> Metadata:
    """Returns the `attention.` keys."""
    values = {
        "head_count": u32(c.heads),
        "head_count_kv": u32(1),
        "key_length": u32(c.head_size),
        "value_length": u32(c.head_size),
        "layer_norm_rms_epsilon": f32(c.norm_epsilon),
        "q_lora_rank": u32(c.query_rank),
        "output_group_count": u32(c.output_groups),
        "output_lora_rank": u32(c.output_rank),
        "sliding_window": u32(c.window),
        "compress_ratios": array(ratios, Kind.INT32),
        "compress_rope_freq_base": f32(c.compress_rope_base),
        "indexer.head_count": u32(c.index_heads),
        "indexer.key_length": u32(c.index_size),
        "indexer.top_k": u32(c.index_top_k),
    }
    return {"attention." + key: value for key, value in values.items()}


def rope(c: ModelConfig) -> Metadata:
    """Returns the `rope.` keys. Without the type of the scaling, other programs would scale linearly."""
    values = {"rope.dimension_count": u32(c.rope_size), "rope.freq_base": f32(c.rope_base)}
    if c.yarn is not None:
        values |= {
            "rope.scaling.type": text("yarn"),
            "rope.scaling.factor": f32(c.yarn.factor),
            "rope.scaling.original_context_length": u32(c.yarn.original_context),
            "rope.scaling.yarn_beta_fast": f32(c.yarn.beta_fast),
            "rope.scaling.yarn_beta_slow": f32(c.yarn.beta_slow),
        }
    return values
