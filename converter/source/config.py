"""What `config.json` says of a checkpoint, checked, in one struct for both ways of writing it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ds4py.errors import FormatError
from ds4py.json_types import Json

RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}
"""transformers' names of the kinds of layers, and their compression ratios."""


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
class Config:
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


class Keys:
    """Typed access to a JSON object; every error names the file and the key."""

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        self.path, self.values = path, values

    def fail(self, key: str, wanted: str) -> FormatError:
        """The error for a value that is not as wanted."""
        found = json.dumps(self.values[key])[:80] if key in self.values else "missing"
        return FormatError(f"{self.path}: key '{key}' is {found}, wanted {wanted}")

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def integer(self, key: str, low: int = 1, high: int = 1 << 31) -> int:
        """A whole number in [low, high]."""
        value = self.values.get(key)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(key, f"a whole number from {low} to {high}")
        return value

    def number(self, key: str) -> float:
        """A finite number above 0."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise self.fail(key, "a number above 0")
        return float(value)

    def part(self, key: str) -> Keys:
        """The keys of an object within this one; none where it is missing."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.fail(key, "an object")
        return Keys(self.path, value or {})

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers from 0 on."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
            raise self.fail(key, "a list of whole numbers")
        return tuple(value)

    def exactly(self, key: str, wanted: Any) -> None:
        """The value, where there is one, is the only one that this architecture knows."""
        if self.has(key) and self.values[key] != wanted:
            raise self.fail(key, json.dumps(wanted))


def load(path: Path) -> Json:
    """A JSON object. Raises FormatError naming the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: not JSON ({error}); download it again") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: not a JSON object")
    return found


def read_config(folder: Path) -> Config:
    """`config.json`, with what `inference/config.json` adds or overrides. Raises FormatError."""
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
    return Config(
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
        raise keys.fail(key, f"0, 4 or 128 for each of {layers} layers")
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


def rotary(keys: Keys) -> Json:
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
        block=keys.integer("dspark_block_size", 1, 16),
        noise=keys.integer("dspark_noise_token_id", 0, keys.integer("vocab_size") - 1),
        taps=taps,
        rank=keys.integer("dspark_markov_rank", high=1 << 16),
    )
