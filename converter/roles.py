"""Lists the tensors of targets and drafters, with their names, roles and shapes.

Tensors of drafters have llama.cpp's names here; `contracts` translates them. Shapes have the outermost dimension first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ds4py.constants import CSA_RATIO

from .source.config import ModelConfig


class Role(Enum):
    """Roles of tensors in a model. Presets choose the types of tensors by their roles."""

    EMBEDDING = "embedding"
    OUTPUT = "output head"
    ATTENTION = "attention"
    SHARED = "shared expert"
    GATE = "routed gate"
    UP = "routed up"
    DOWN = "routed down"
    SMALL = "router, indexer, compressor"
    HC = "hyper-connections"
    APE = "position bias"
    VECTOR = "norms, sinks, biases"
    TOKEN_MAP = "token map"
    FUSION = "feature fusion"
    MARKOV = "markov head"
    CONFIDENCE = "confidence head"


EXPERTS = (Role.GATE, Role.UP, Role.DOWN)


@dataclass(frozen=True)
class Slot:
    """The name, role and shape of a tensor that a model has."""

    name: str
    role: Role
    shape: tuple[int, ...]


SUFFIXES = {
    "attn_norm.weight": Role.VECTOR,
    "ffn_norm.weight": Role.VECTOR,
    "attn_sinks.weight": Role.VECTOR,
    "attn_q_a.weight": Role.ATTENTION,
    "attn_q_a_norm.weight": Role.VECTOR,
    "attn_q_b.weight": Role.ATTENTION,
    "attn_kv.weight": Role.ATTENTION,
    "attn_kv_a_norm.weight": Role.VECTOR,
    "attn_output_a.weight": Role.ATTENTION,
    "attn_output_b.weight": Role.ATTENTION,
    "hc_attn_fn.weight": Role.HC,
    "hc_attn_base.weight": Role.VECTOR,
    "hc_attn_scale.weight": Role.VECTOR,
    "hc_ffn_fn.weight": Role.HC,
    "hc_ffn_base.weight": Role.VECTOR,
    "hc_ffn_scale.weight": Role.VECTOR,
    "attn_compressor_kv.weight": Role.SMALL,
    "attn_compressor_gate.weight": Role.SMALL,
    "attn_compressor_ape.weight": Role.APE,
    "attn_compressor_norm.weight": Role.VECTOR,
    "indexer.attn_q_b.weight": Role.ATTENTION,
    "indexer.proj.weight": Role.SMALL,
    "indexer_compressor_kv.weight": Role.SMALL,
    "indexer_compressor_gate.weight": Role.SMALL,
    "indexer_compressor_ape.weight": Role.APE,
    "indexer_compressor_norm.weight": Role.VECTOR,
    "ffn_gate_inp.weight": Role.SMALL,
    "exp_probs_b.bias": Role.VECTOR,
    "exp_probs_b_vl.bias": Role.VECTOR,
    "ffn_gate_tid2eid.weight": Role.TOKEN_MAP,
    "ffn_gate_exps.weight": Role.GATE,
    "ffn_up_exps.weight": Role.UP,
    "ffn_down_exps.weight": Role.DOWN,
    "ffn_gate_shexp.weight": Role.SHARED,
    "ffn_up_shexp.weight": Role.SHARED,
    "ffn_down_shexp.weight": Role.SHARED,
}
"""The tensors of a layer without `blk.N.`, in the order of files."""

SINGLE = {
    "token_embd.weight": Role.EMBEDDING,
    "output.weight": Role.OUTPUT,
    "output_norm.weight": Role.VECTOR,
    "output_hc_fn.weight": Role.HC,
    "output_hc_base.weight": Role.VECTOR,
    "output_hc_scale.weight": Role.VECTOR,
    "fc.weight": Role.FUSION,
    "enc.output_norm.weight": Role.VECTOR,
    "markov_w1.weight": Role.MARKOV,
    "markov_w2.weight": Role.MARKOV,
    "conf_proj.weight": Role.CONFIDENCE,
    "conf_proj.bias": Role.VECTOR,
}


def role_of(name: str) -> Role | None:
    """Returns the role of a tensor by its name, or None for an unknown name."""
    if name.startswith("blk."):
        return SUFFIXES.get(name.split(".", 2)[-1])
    return SINGLE.get(name)


def slot(name: str, *shape: int) -> Slot:
    """Makes the slot of a known name."""
    role = role_of(name)
    assert role is not None, name
    return Slot(name, role, shape)


def target_slots(config: ModelConfig) -> Iterator[Slot]:
    """Yields the tensors of a target, in the order of files."""
    c = config
    yield slot("token_embd.weight", c.vocab, c.hidden)
    if not c.tied:
        yield slot("output.weight", c.vocab, c.hidden)
    yield slot("output_norm.weight", c.hidden)
    yield from hyper_connection("output_hc", c, c.streams, 1)
    for layer, ratio in enumerate(c.ratios):
        yield from layer_slots(c, f"blk.{layer}.", ratio, hashed=layer < c.hash_layers)


def drafter_slots(config: ModelConfig, stages: int, *, confidence: int | None, bias: bool) -> Iterator[Slot]:
    """Yields the tensors of a drafter.

    `confidence` is the width of the confidence head, or None if there is none. `bias` tells whether the head has a
    bias.
    """
    c, dspark = config, config.dspark
    assert dspark is not None
    yield slot("fc.weight", c.hidden, len(dspark.taps) * c.hidden)
    yield slot("enc.output_norm.weight", c.hidden)
    for stage in range(stages):
        yield from layer_slots(c, f"blk.{stage}.", 0, hashed=False)
    yield slot("output_norm.weight", c.hidden)
    yield from hyper_connection("output_hc", c, c.streams, 1)
    yield slot("markov_w1.weight", c.vocab, dspark.rank)
    yield slot("markov_w2.weight", c.vocab, dspark.rank)
    if confidence is not None:
        yield slot("conf_proj.weight", 1, confidence)
        if bias:
            yield slot("conf_proj.bias", 1)


def layer_slots(config: ModelConfig, block: str, ratio: int, *, hashed: bool) -> Iterator[Slot]:
    """Yields the tensors of one layer of a target, or of one stage of a drafter."""
    yield from attention_slots(config, block, ratio)
    yield from hyper_connection(block + "hc_attn", config, (2 + config.streams) * config.streams, 3)
    yield from hyper_connection(block + "hc_ffn", config, (2 + config.streams) * config.streams, 3)
    yield from moe_slots(config, block, hashed=hashed)


def attention_slots(c: ModelConfig, block: str, ratio: int) -> Iterator[Slot]:
    """Yields the tensors of attention, with compressor and indexer if the ratio has them."""
    yield slot(block + "attn_norm.weight", c.hidden)
    yield slot(block + "attn_sinks.weight", c.heads)
    yield slot(block + "attn_q_a.weight", c.query_rank, c.hidden)
    yield slot(block + "attn_q_a_norm.weight", c.query_rank)
    yield slot(block + "attn_q_b.weight", c.heads * c.head_size, c.query_rank)
    yield slot(block + "attn_kv.weight", c.head_size, c.hidden)
    yield slot(block + "attn_kv_a_norm.weight", c.head_size)
    yield slot(
        block + "attn_output_a.weight", c.output_groups * c.output_rank, c.heads * c.head_size // c.output_groups
    )
    yield slot(block + "attn_output_b.weight", c.hidden, c.output_groups * c.output_rank)
    if ratio:
        yield from compressor(block + "attn_compressor", c.hidden, ratio, c.head_size)
    if ratio == CSA_RATIO:
        yield slot(block + "indexer.attn_q_b.weight", c.index_heads * c.index_size, c.query_rank)
        yield slot(block + "indexer.proj.weight", c.index_heads, c.hidden)
        yield from compressor(block + "indexer_compressor", c.hidden, ratio, c.index_size)


def compressor(name: str, hidden: int, ratio: int, size: int) -> Iterator[Slot]:
    """Yields the tensors of a compressor.

    With a ratio of 4 its rows are twice as wide, because each position feeds two blocks (docs/model.md, section 2.5).
    """
    width = 2 * size if ratio == CSA_RATIO else size
    yield slot(f"{name}_kv.weight", width, hidden)
    yield slot(f"{name}_gate.weight", width, hidden)
    yield slot(f"{name}_ape.weight", ratio, width)
    yield slot(f"{name}_norm.weight", size)


def moe_slots(c: ModelConfig, block: str, *, hashed: bool) -> Iterator[Slot]:
    """Yields the tensors of router, routed experts and shared expert."""
    yield slot(block + "ffn_norm.weight", c.hidden)
    yield slot(block + "ffn_gate_inp.weight", c.experts, c.hidden)
    if hashed:
        yield slot(block + "ffn_gate_tid2eid.weight", c.vocab, c.experts_used)
    else:
        yield slot(block + "exp_probs_b.bias", c.experts)
    for part, shape in (("gate", (c.expert_width, c.hidden)), ("up", (c.expert_width, c.hidden)),
                        ("down", (c.hidden, c.expert_width))):  # fmt: skip
        yield slot(f"{block}ffn_{part}_exps.weight", c.experts, *shape)
        yield slot(f"{block}ffn_{part}_shexp.weight", *shape)


def hyper_connection(name: str, c: ModelConfig, mix: int, scales: int) -> Iterator[Slot]:
    """Yields the tensors of one hyper-connection, or of the head's."""
    yield slot(f"{name}_fn.weight", mix, c.streams * c.hidden)
    yield slot(f"{name}_base.weight", mix)
    yield slot(f"{name}_scale.weight", scales)
