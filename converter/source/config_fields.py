"""Reads the fields of `config.json` that have several spellings or conditions between them."""

from __future__ import annotations

from typing import Any

from ds4py.constants import CSA_RATIO, HCA_RATIO, MAX_ROWS

from .config import DSpark, Yarn
from .json_keys import Keys

RATIOS = {
    "sliding_attention": 0,
    "compressed_sparse_attention": CSA_RATIO,
    "heavily_compressed_attention": HCA_RATIO,
}
"""The compression ratio of each kind of layer by transformers' names (docs/model.md, section 1.2)."""


def check_architecture(keys: Keys) -> None:
    """Raises FormatError unless `config.json` describes the architecture that is known here."""
    if keys.values.get("model_type") != "deepseek_v4":
        raise keys.fail("model_type", '"deepseek_v4"; only DeepSeek-V4 checkpoints are converted')
    for key, wanted in (
        ("scoring_func", "sqrtsoftplus"), ("topk_method", "noaux_tc"), ("num_key_value_heads", 1),
        ("n_shared_experts", 1), ("hidden_act", "silu"), ("attention_bias", False),
    ):  # fmt: skip
        keys.exactly(key, wanted)


def output_groups(keys: Keys) -> int:
    """Reads `o_groups`, which must divide the heads."""
    groups, heads = keys.integer("o_groups"), keys.integer("num_attention_heads")
    if heads % groups:
        raise keys.fail("o_groups", f"a divisor of the {heads} heads")
    return groups


def rope_size(keys: Keys) -> int:
    """Reads the rotated components of a head, given as a number or as a fraction of the head's size."""
    if keys.has("qk_rope_head_dim"):
        return keys.integer("qk_rope_head_dim", 2, keys.integer("head_dim"))
    return round(keys.number("partial_rotary_factor") * keys.integer("head_dim"))


def layer_ratios(keys: Keys, layers: int) -> tuple[int, ...]:
    """Reads the compression ratios, given as numbers or as transformers' names of layers.

    In a list of numbers, the layers of the drafter follow those of the target.
    """
    if keys.has("compress_ratios"):
        key, ratios = "compress_ratios", keys.integers("compress_ratios")
    else:
        key, names = "layer_types", keys.values.get("layer_types")
        if not isinstance(names, list) or not all(name in RATIOS for name in names):
            raise keys.fail(key, "one of " + ", ".join(RATIOS) + " for each layer")
        ratios = tuple(RATIOS[name] for name in names)
    if len(ratios) < layers or not set(ratios) <= set(RATIOS.values()):
        raise keys.fail(key, f"0, {CSA_RATIO} or {HCA_RATIO} for each of {layers} layers")
    return ratios


def hash_layers(keys: Keys, layers: int) -> int:
    """Reads how many leading layers route by the token, given as a number or as transformers' names."""
    if keys.has("num_hash_layers"):
        return keys.integer("num_hash_layers", 0, layers)
    names = keys.values.get("mlp_layer_types")
    count = names.count("hash_moe") if isinstance(names, list) else -1
    if not isinstance(names, list) or names != ["hash_moe"] * count + ["moe"] * (layers - count):
        raise keys.fail("mlp_layer_types", f"hash_moe for the first layers and moe for the rest of {layers}")
    return count


def rotary(keys: Keys) -> dict[str, Any]:
    """Reads the RoPE bases of plain and compressing layers, and YaRN.

    transformers nests them in `rope_parameters`.
    """
    nested = keys.part("rope_parameters")
    if "main" not in nested.values:
        scaling = keys.part("rope_scaling")
        yarn = read_yarn(scaling if scaling.values else nested) if scaling.values or nested.values else None
        return {"main": keys.number("rope_theta"), "compress": keys.number("compress_rope_theta"), "yarn": yarn}
    main, compress = nested.part("main"), nested.part("compress")
    return {
        "main": main.number("rope_theta"),
        "compress": compress.number("rope_theta"),
        "yarn": read_yarn(compress) if "factor" in compress.values else None,
    }


def read_yarn(keys: Keys) -> Yarn:
    """Reads the scaling. Raises FormatError for any other than YaRN."""
    key = "type" if keys.has("type") else "rope_type"
    if keys.values.get(key) != "yarn":
        raise keys.fail(key, '"yarn"')
    fast = keys.number("beta_fast") if keys.has("beta_fast") else 32.0
    slow = keys.number("beta_slow") if keys.has("beta_slow") else 1.0
    return Yarn(keys.number("factor"), keys.integer("original_max_position_embeddings"), fast, slow)


def token_ids(keys: Keys) -> dict[str, int]:
    """Reads the ids of begin, end and padding that are given. Of several end tokens it takes the first."""
    found = {}
    for name in ("bos", "eos", "pad"):
        value = keys.values.get(f"{name}_token_id")
        value = value[0] if isinstance(value, list) and value else value
        if type(value) is int:
            found[name] = value
    return found


def dspark(keys: Keys) -> DSpark | None:
    """Reads the sizes of the drafter, or returns None if the checkpoint has none."""
    if not keys.has("dspark_block_size"):
        return None
    layers = keys.integer("num_hidden_layers")
    taps = keys.integers("dspark_target_layer_ids")
    if not taps or list(taps) != sorted(set(taps)) or taps[-1] >= layers:
        raise keys.fail("dspark_target_layer_ids", f"ascending ids of layers below {layers}")
    return DSpark(
        block=keys.integer("dspark_block_size", 1, MAX_ROWS),
        noise=keys.integer("dspark_noise_token_id", 0, keys.integer("vocab_size") - 1),
        taps=taps,
        rank=keys.integer("dspark_markov_rank", high=1 << 16),
    )
