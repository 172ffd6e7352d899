"""Reads `config.json` of a checkpoint into a `ModelConfig`."""

from __future__ import annotations

from pathlib import Path

from ds4py.errors import FormatError

from .config import ModelConfig
from .config_fields import (
    check_architecture,
    dspark,
    hash_layers,
    layer_ratios,
    output_groups,
    rope_size,
    rotary,
    token_ids,
)
from .json_keys import Keys, load


def read_config(folder: Path) -> ModelConfig:
    """Reads `config.json`, with the keys that `inference/config.json` adds or overrides.

    Raises FormatError naming a key that is wrong.
    """
    path = folder / "config.json"
    if not path.exists():
        raise FormatError(f"{path}: missing; give the folder of a checkpoint (safetensors shards and config.json)")
    values = load(path)
    extra = folder / "inference" / "config.json"
    if extra.exists():
        values.update(load(extra))
    keys = Keys(path, values)
    check_architecture(keys)
    layers = keys.integer("num_hidden_layers", high=1024)
    ratios = layer_ratios(keys, layers)
    rope = rotary(keys)
    return ModelConfig(
        layers=layers,
        hidden=keys.integer("hidden_size", high=1 << 20),
        vocab=keys.integer("vocab_size", high=1 << 24),
        context=keys.integer("max_position_embeddings"),
        heads=keys.integer("num_attention_heads", high=1 << 12),
        head_size=keys.integer("head_dim", high=1 << 12),
        rope_size=rope_size(keys),
        query_rank=keys.integer("q_lora_rank", high=1 << 20),
        output_groups=output_groups(keys),
        output_rank=keys.integer("o_lora_rank", high=1 << 20),
        window=keys.integer("sliding_window", high=1 << 20),
        ratios=ratios[:layers],
        draft_ratios=ratios[layers:],
        rope_base=rope["main"],
        compress_rope_base=rope["compress"],
        yarn=rope["yarn"],
        index_heads=keys.integer("index_n_heads", high=1 << 12),
        index_size=keys.integer("index_head_dim", high=1 << 12),
        index_top_k=keys.integer("index_topk", high=1 << 20),
        experts=keys.integer("n_routed_experts", high=1 << 12),
        experts_used=keys.integer("num_experts_per_tok", high=keys.integer("n_routed_experts")),
        expert_width=keys.integer("moe_intermediate_size", high=1 << 20),
        hash_layers=hash_layers(keys, layers),
        normalise_weights=keys.values.get("norm_topk_prob", True) is True,
        routed_scale=keys.number("routed_scaling_factor"),
        clamp=keys.number("swiglu_limit"),
        streams=keys.integer("hc_mult", 4, 4),
        sinkhorn_iterations=keys.integer("hc_sinkhorn_iters", high=1000),
        hc_epsilon=keys.number("hc_eps"),
        norm_epsilon=keys.number("rms_norm_eps"),
        tied=keys.values.get("tie_word_embeddings") is True,
        token_ids=token_ids(keys),
        dspark=dspark(keys),
    )
