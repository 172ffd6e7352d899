"""Finds each tensor in a checkpoint, under DeepSeek's own names or under one of transformers' two namings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ds4py.errors import FormatError

from ..roles import EXPERTS, Slot


class Naming(Enum):
    """The naming of the tensors in a checkpoint."""

    DEEPSEEK = "DeepSeek"
    SAVED = "transformers, saved"
    """The names that `save_pretrained` writes: DeepSeek's in layers, transformers' outside them."""
    MODULES = "transformers, modules"
    """The names of transformers' modules, as in a `state_dict`."""


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A matrix within a stored tensor: `rows` rows from row `first` on. `shape` is that of the stored tensor."""

    name: str
    shape: tuple[int, ...]
    first: int
    rows: int


DEEPSEEK = {
    "token_embd.weight": "embed.weight",
    "output.weight": "head.weight",
    "output_norm.weight": "norm.weight",
    "output_hc_fn.weight": "hc_head_fn",
    "output_hc_base.weight": "hc_head_base",
    "output_hc_scale.weight": "hc_head_scale",
    "attn_norm.weight": "attn_norm.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "attn_sinks.weight": "attn.attn_sink",
    "attn_q_a.weight": "attn.wq_a.weight",
    "attn_q_a_norm.weight": "attn.q_norm.weight",
    "attn_q_b.weight": "attn.wq_b.weight",
    "attn_kv.weight": "attn.wkv.weight",
    "attn_kv_a_norm.weight": "attn.kv_norm.weight",
    "attn_output_a.weight": "attn.wo_a.weight",
    "attn_output_b.weight": "attn.wo_b.weight",
    "hc_attn_fn.weight": "hc_attn_fn",
    "hc_attn_base.weight": "hc_attn_base",
    "hc_attn_scale.weight": "hc_attn_scale",
    "hc_ffn_fn.weight": "hc_ffn_fn",
    "hc_ffn_base.weight": "hc_ffn_base",
    "hc_ffn_scale.weight": "hc_ffn_scale",
    "attn_compressor_kv.weight": "attn.compressor.wkv.weight",
    "attn_compressor_gate.weight": "attn.compressor.wgate.weight",
    "attn_compressor_ape.weight": "attn.compressor.ape",
    "attn_compressor_norm.weight": "attn.compressor.norm.weight",
    "indexer.attn_q_b.weight": "attn.indexer.wq_b.weight",
    "indexer.proj.weight": "attn.indexer.weights_proj.weight",
    "indexer_compressor_kv.weight": "attn.indexer.compressor.wkv.weight",
    "indexer_compressor_gate.weight": "attn.indexer.compressor.wgate.weight",
    "indexer_compressor_ape.weight": "attn.indexer.compressor.ape",
    "indexer_compressor_norm.weight": "attn.indexer.compressor.norm.weight",
    "ffn_gate_inp.weight": "ffn.gate.weight",
    "exp_probs_b.bias": "ffn.gate.bias",
    "ffn_gate_tid2eid.weight": "ffn.gate.tid2eid",
    "ffn_gate_exps.weight": "ffn.experts.{}.w1.weight",
    "ffn_up_exps.weight": "ffn.experts.{}.w3.weight",
    "ffn_down_exps.weight": "ffn.experts.{}.w2.weight",
    "ffn_gate_shexp.weight": "ffn.shared_experts.w1.weight",
    "ffn_up_shexp.weight": "ffn.shared_experts.w3.weight",
    "ffn_down_shexp.weight": "ffn.shared_experts.w2.weight",
}
"""GGUF names without `blk.N.`, with DeepSeek's names without `layers.N.` or `mtp.N.`. `{}` stands for an expert."""

MODULES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output.weight": "lm_head.weight",
    "output_norm.weight": "model.norm.weight",
    "output_hc_fn.weight": "model.hc_head.hc_fn",
    "output_hc_base.weight": "model.hc_head.hc_base",
    "output_hc_scale.weight": "model.hc_head.hc_scale",
    "attn_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn_sinks.weight": "self_attn.sinks",
    "attn_q_a.weight": "self_attn.q_a_proj.weight",
    "attn_q_a_norm.weight": "self_attn.q_a_norm.weight",
    "attn_q_b.weight": "self_attn.q_b_proj.weight",
    "attn_kv.weight": "self_attn.kv_proj.weight",
    "attn_kv_a_norm.weight": "self_attn.kv_norm.weight",
    "attn_output_a.weight": "self_attn.o_a_proj.weight",
    "attn_output_b.weight": "self_attn.o_b_proj.weight",
    "hc_attn_fn.weight": "attn_hc.fn",
    "hc_attn_base.weight": "attn_hc.base",
    "hc_attn_scale.weight": "attn_hc.scale",
    "hc_ffn_fn.weight": "ffn_hc.fn",
    "hc_ffn_base.weight": "ffn_hc.base",
    "hc_ffn_scale.weight": "ffn_hc.scale",
    "attn_compressor_kv.weight": "self_attn.compressor.kv_proj.weight",
    "attn_compressor_gate.weight": "self_attn.compressor.gate_proj.weight",
    "attn_compressor_ape.weight": "self_attn.compressor.position_bias",
    "attn_compressor_norm.weight": "self_attn.compressor.kv_norm.weight",
    "indexer.attn_q_b.weight": "self_attn.compressor.indexer.q_b_proj.weight",
    "indexer.proj.weight": "self_attn.compressor.indexer.scorer.weights_proj.weight",
    "indexer_compressor_kv.weight": "self_attn.compressor.indexer.kv_proj.weight",
    "indexer_compressor_gate.weight": "self_attn.compressor.indexer.gate_proj.weight",
    "indexer_compressor_ape.weight": "self_attn.compressor.indexer.position_bias",
    "indexer_compressor_norm.weight": "self_attn.compressor.indexer.kv_norm.weight",
    "ffn_gate_inp.weight": "mlp.gate.weight",
    "exp_probs_b.bias": "mlp.gate.e_score_correction_bias",
    "ffn_gate_tid2eid.weight": "mlp.gate.tid2eid",
    "ffn_gate_exps.weight": "mlp.experts.gate_up_proj",
    "ffn_up_exps.weight": "mlp.experts.gate_up_proj",
    "ffn_down_exps.weight": "mlp.experts.down_proj",
    "ffn_gate_shexp.weight": "mlp.shared_experts.gate_proj.weight",
    "ffn_up_shexp.weight": "mlp.shared_experts.up_proj.weight",
    "ffn_down_shexp.weight": "mlp.shared_experts.down_proj.weight",
}

SAVED = {
    **DEEPSEEK,
    **{name: path for name, path in MODULES.items() if path.startswith("model.")},
    "attn_kv_a_norm.weight": "attn.norm.weight",
}
"""DeepSeek's names in layers, transformers' names outside them, and one tensor that `save_pretrained` renames."""

TABLES = {
    Naming.DEEPSEEK: ("layers.", DEEPSEEK),
    Naming.SAVED: ("model.layers.", SAVED),
    Naming.MODULES: ("model.layers.", MODULES),
}
"""The prefix of layers and the names of each naming."""

FIRST_STAGE = {"fc.weight": "main_proj.weight", "enc.output_norm.weight": "main_norm.weight"}
"""Drafter tensors that are stored with its first stage."""

LAST_STAGE = {
    "output_norm.weight": "norm.weight",
    "output_hc_fn.weight": "hc_head_fn",
    "output_hc_base.weight": "hc_head_base",
    "output_hc_scale.weight": "hc_head_scale",
    "markov_w1.weight": "markov_head.markov_w1.weight",
    "markov_w2.weight": "markov_head.markov_w2.weight",
    "conf_proj.weight": "confidence_head.proj.weight",
    "conf_proj.bias": "confidence_head.proj.bias",
}
"""Drafter tensors that are stored with its last stage."""


def recognise_naming(names: Sequence[str]) -> Naming:
    """Returns the naming of a target, from the tensors of its first layer. Raises FormatError if it has none."""
    first = [name for name in names if name.startswith(("layers.0.", "model.layers.0."))]
    if not first:
        raise FormatError("no tensor is named 'layers.0.*' or 'model.layers.0.*': this is no target")
    if any(name.startswith("layers.") for name in first):
        return Naming.DEEPSEEK
    return Naming.MODULES if any(".self_attn." in name for name in first) else Naming.SAVED


def target_slices(naming: Naming, slot: Slot) -> list[TensorSlice]:
    """Returns the stored matrices of a target's tensor, one for each expert."""
    prefix, table = TABLES[naming]
    if not slot.name.startswith("blk."):
        return [whole(table[slot.name], slot.shape)]
    _, layer, suffix = slot.name.split(".", 2)
    name = f"{prefix}{layer}.{table[suffix]}"
    if naming == Naming.MODULES and slot.role in EXPERTS:
        return stacked(name, suffix, slot)
    return slices(name, slot)


def drafter_slices(slot: Slot, stages: int) -> list[TensorSlice]:
    """Returns the stored matrices of a drafter's tensor. All checkpoints name these as DeepSeek does."""
    if slot.name.startswith("blk."):
        _, stage, suffix = slot.name.split(".", 2)
        return slices(f"mtp.{stage}.{DEEPSEEK[suffix]}", slot)
    if slot.name in FIRST_STAGE:
        return [whole("mtp.0." + FIRST_STAGE[slot.name], slot.shape)]
    return [whole(f"mtp.{stages - 1}.{LAST_STAGE[slot.name]}", slot.shape)]


def slices(name: str, slot: Slot) -> list[TensorSlice]:
    """Returns the stored matrices of a tensor that is stored whole, or with each expert as a tensor of its own."""
    if slot.role not in EXPERTS:
        return [whole(name, slot.shape)]
    return [whole(name.format(expert), slot.shape[1:]) for expert in range(slot.shape[0])]


def stacked(name: str, suffix: str, slot: Slot) -> list[TensorSlice]:
    """Returns the matrices of experts in transformers' modules.

    All experts are in one tensor, and an expert's gate rows stand before its up rows.
    """
    experts, rows, columns = slot.shape
    joined = name.endswith("gate_up_proj")
    height = 2 * rows if joined else rows
    offset = rows if suffix.startswith("ffn_up") else 0
    shape = (experts, height, columns)
    return [TensorSlice(name, shape, expert * height + offset, rows) for expert in range(experts)]


def whole(name: str, shape: tuple[int, ...]) -> TensorSlice:
    """Returns a stored tensor as one matrix. A vector is one row."""
    return TensorSlice(name, shape, 0, shape[0] if len(shape) > 1 else 1)
