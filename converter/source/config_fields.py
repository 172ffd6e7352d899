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
"""The compression ratio of each kind of layer, by the names of transformers (docs/model.md, section 1.2)."""


def check_architecture(keys: Keys) -> None:
    """This is the architecture, and none of its parts is another than the one known here."""
    if keys.values.get("model_type") != "deepseek_v4":
        raise keys.fail("model_type", '"deepseek_v4"; only DeepSeek-V4 checkpoints are converted')
    for key, wanted in (
        ("scoring_func", "sqrtsoftplus"), ("topk_method", "noaux_tc"), ("num_key_value_heads", 1),
        ("n_shared_experts", 1), ("hidden_act", "silu"), ("attention_bias", False),
    ):  # fmt: skip
        keys.exactly(key, wanted)


def output_groups(keys: Keys) -> int:
    """`o_groups`, which divides the heads."""
    groups, heads = keys.integer("o_groups"), keys.integer("num_attention_heads")
    if heads % groups:
        raise keys.fail("o_groups", f"a divisor of the {heads} heads")
    return groups


def rope_size(keys: Keys) -> int:
    """Rotated components of a head: as such, or as a fraction of the head's size."""
    if keys.has("qk_rope_head_dim"):
        return keys.integer("qk_rope_head_dim", 2, keys.integer("head_dim"))
    return round(keys.number("partial_rotary_factor") * keys.integer("head_dim"))


def layer_ratios(keys: Keys, layers: int) -> tuple[int, ...]:
    """Compression ratios: numbers (the drafter's layers follow the target's), or transformers' names."""
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
    """Leading layers that route by the token: a number, or transformers' names."""
    if keys.has("num_hash_layers"):
        return keys.integer("num_hash_layers", 0, layers)
    names = keys.values.get("mlp_layer_types")
    count = names.count("hash_moe") if isinstance(names, list) else -1
    if not isinstance(names, list) or names != ["hash_moe"] * count + ["moe"] * (layers - count):
        raise keys.fail("mlp_layer_types", f"hash_moe for the first layers and moe for the rest of {layers}")
    return count


def rotary(keys: Keys) -> dict[str, Any]:
    """Bases of plain and compressed layers, and YaRN; transformers nests them in `rope_parameters`."""
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
    """The scaling; only YaRN exists."""
    key = "type" if keys.has("type") else "rope_type"
    if keys.values.get(key) != "yarn":
        raise keys.fail(key, '"yarn"')
    fast = keys.number("beta_fast") if keys.has("beta_fast") else 32.0
    slow = keys.number("beta_slow") if keys.has("beta_slow") else 1.0
    return Yarn(keys.number("factor"), keys.integer("original_max_position_embeddings"), fast, slow)


def token_ids(keys: Keys) -> dict[str, int]:
    """Ids of begin, end and padding, where they are known; of several end tokens the first."""
    found = {}
    for name in ("bos", "eos", "pad"):
        value = keys.values.get(f"{name}_token_id")
        value = value[0] if isinstance(value, list) and value else value
        if type(value) is int:
            found[name] = value
    return found


def dspark(keys: Keys) -> DSpark | None:
    """The drafter's numbers, where the checkpoint has one."""
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
