"""Reads and checks a drafter file of any contract, tensor by tensor."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ds4py import _native
from ds4py.constants import MAX_ROWS

from . import quantise
from .contracts import Contract, canonical, name_in, recognise_contract
from .drafter_keys import file_error, integer, keys_of, read_taps
from .quantise import FLOATS
from .roles import Role, drafter_slots
from .source.config import DSpark, ModelConfig
from .source.gguf_file import GgufSource

MAX_STAGES = 8
STREAMS = 4

KEYS_OF_SHAPES = {
    "embedding_length": "hidden", "attention.head_count": "heads", "attention.key_length": "head_size",
    "attention.q_lora_rank": "query_rank", "attention.output_group_count": "output_groups",
    "attention.output_lora_rank": "output_rank", "expert_count": "experts",
    "expert_feed_forward_length": "expert_width",
    "hyper_connection.count": "streams", "vocab_size": "vocab",
}  # fmt: skip
"""Keys that repeat the shapes of tensors, with the fields of `ModelConfig` that they repeat."""


@dataclass(frozen=True)
class DrafterFile:
    """A sound drafter file.

    Attributes:
        contract: the contract that the tensor names follow.
        shape: the sizes that the tensors give; other fields are 0.
        stages: the number of stages.
        block: the rows of a draft block.
        noise: the id of the noise token.
        taps: the tapped target layers, counted from 0 by their outputs.
        rank: the rank of the Markov head.
        confidence: whether there is a confidence head.
        names: the file's tensor names by llama.cpp's names.
    """

    contract: Contract
    shape: ModelConfig
    stages: int
    block: int
    noise: int
    taps: tuple[int, ...]
    rank: int
    confidence: bool
    names: dict[str, str]


def contract_of(source: GgufSource) -> Contract | None:
    """Returns the contract of a file, or None if it is not a drafter."""
    return recognise_contract(set(source.tensors))


def read(source: GgufSource) -> DrafterFile:
    """Checks keys, presence, shapes and types. Raises FormatError naming the first that is wrong."""
    contract = contract_of(source)
    assert contract is not None
    names = {canonical(contract, name): name for name in source.tensors}
    stages = count_stages(source, names)
    taps = read_taps(source)
    rank = dimension(source, names, "markov_w1.weight", 1)
    noise, block = integer(source, "noise"), integer(source, "block")
    shape = derive_shape(source, names, DSpark(block, noise, taps, rank))
    check_keys(source, shape, stages)
    check_tensors(source, contract, names, shape, stages)
    return DrafterFile(contract, shape, stages, block, noise, taps, rank, "conf_proj.weight" in names, names)


def count_stages(source: GgufSource, names: dict[str, str]) -> int:
    """Returns the number of stages: the highest one that a tensor names, plus 1."""
    numbers = [int(match[1]) for match in (re.match(r"blk\.(\d+)\.", name) for name in names) if match]
    stages = max(numbers, default=-1) + 1
    if not 1 <= stages <= MAX_STAGES:
        raise file_error(source, f"has {stages} stages, wanted 1 to {MAX_STAGES}")
    return stages


def derive_shape(source: GgufSource, names: dict[str, str], dspark: DSpark) -> ModelConfig:
    """Derives the sizes of a drafter from the tensors of its first stage. Other fields are 0 or empty."""

    def of(name: str, axis: int) -> int:
        return dimension(source, names, name, axis)

    heads, head_size = of("blk.0.attn_sinks.weight", 0), of("blk.0.attn_kv.weight", 0)
    group = of("blk.0.attn_output_a.weight", 1)
    groups = heads * head_size // group if group and heads * head_size % group == 0 else 0
    if not groups:
        raise file_error(
            source,
            f"tensor '{names['blk.0.attn_output_a.weight']}' has rows of {group}, wanted a divisor of "
            f"{heads * head_size}, the heads' width",
        )
    return ModelConfig(
        layers=0, hidden=of("fc.weight", 0), vocab=of("markov_w1.weight", 0), context=0, heads=heads,
        head_size=head_size, rope_size=0, query_rank=of("blk.0.attn_q_a.weight", 0), output_groups=groups,
        output_rank=of("blk.0.attn_output_a.weight", 0) // groups, window=0, ratios=(), draft_ratios=(), rope_base=0,
        compress_rope_base=0, yarn=None, index_heads=0, index_size=0, index_top_k=0,
        experts=of("blk.0.ffn_gate_inp.weight", 0), experts_used=0, expert_width=of("blk.0.ffn_gate_shexp.weight", 0),
        hash_layers=0, normalise_weights=True, routed_scale=0, clamp=0, streams=STREAMS, sinkhorn_iterations=0,
        hc_epsilon=0, norm_epsilon=0, tied=False, token_ids={}, dspark=dspark,
    )  # fmt: skip


def check_tensors(
    source: GgufSource, contract: Contract, names: dict[str, str], shape: ModelConfig, stages: int
) -> None:
    """Raises FormatError unless the file has exactly the tensors of its contract, with usable shapes and types."""
    confidence, bias = names.get("conf_proj.weight"), "conf_proj.bias" in names
    width = None if confidence is None else source.tensors[confidence].shape[-1]
    if width is not None and shape.dspark is not None and width not in (shape.hidden, shape.hidden + shape.dspark.rank):
        raise file_error(
            source, f"tensor '{confidence}' has rows of {width}, wanted {shape.hidden}, or with the Markov row"
        )
    wanted = {slot.name: slot for slot in drafter_slots(shape, stages, confidence=width, bias=bias)}
    if contract == Contract.LUCEBOX and confidence is not None and not bias:
        raise file_error(
            source, f"tensor '{name_in(contract, 'conf_proj.bias', stages)}' is missing beside '{confidence}'"
        )
    for slot in wanted.values():
        name = name_in(contract, slot.name, stages)
        found = source.tensors.get(name)
        if found is None:
            raise file_error(source, f"tensor '{name}' is missing, wanted shape {list(slot.shape)}")
        if found.shape != slot.shape:
            raise file_error(source, f"tensor '{name}' has shape {list(found.shape)}, wanted {list(slot.shape)}")
        usable = found.kind in FLOATS if slot.role == Role.VECTOR else quantise.has_values(found.kind)
        if not usable:
            raise file_error(
                source, f"tensor '{name}' ({slot.role.value}) is of type {found.kind.name}, which cannot be used"
            )
    extra = [name for inner, name in names.items() if inner not in wanted and inner not in OPTIONAL_TENSORS]
    if extra:
        raise file_error(source, f"tensor '{extra[0]}' has no place in a drafter of contract {contract.value}")


OPTIONAL_TENSORS = ("token_embd.weight", "output.weight")
"""Tensors of the target that llama.cpp's files may contain."""


def check_keys(source: GgufSource, shape: ModelConfig, stages: int) -> None:
    """Raises FormatError if keys contradict the tensors."""
    dspark = shape.dspark
    assert dspark is not None
    if not 1 <= dspark.block <= MAX_ROWS:
        raise file_error(source, f"the block size is {dspark.block}, wanted 1 to {MAX_ROWS}")
    if not 0 <= dspark.noise < shape.vocab:
        raise file_error(source, f"the noise token is {dspark.noise}, outside the vocabulary of {shape.vocab}")
    for concept, wanted in (("stages", stages), ("rank", dspark.rank)):
        for key in keys_of(source, concept):
            if source.value(key) != wanted:
                raise file_error(source, f"key '{key}' is {source.value(key)}, but the tensors say {wanted}")
    for suffix, attribute in KEYS_OF_SHAPES.items():
        key = f"{source.architecture()}.{suffix}"
        found, wanted = source.value(key), getattr(shape, attribute)
        # A file that took over its target's metadata speaks of the target there.
        if found is not None and source.architecture() != "deepseek4" and found != wanted:
            raise file_error(source, f"key '{key}' is {found}, but the tensors say {wanted}")


def dimension(source: GgufSource, names: dict[str, str], name: str, axis: int) -> int:
    """Returns one size of a tensor. Raises FormatError if the tensor is missing or has too few dimensions."""
    if name not in names:
        raise file_error(source, f"tensor '{name}' (or its counterpart in this contract) is missing")
    shape = source.tensors[names[name]].shape
    if axis >= len(shape):
        raise file_error(source, f"tensor '{names[name]}' has shape {list(shape)}, wanted {axis + 1} dimensions")
    return shape[axis]


def mismatches(found: DrafterFile, target: _native.Hyperparameters) -> list[str]:
    """Describes everything about a drafter that does not fit the target."""
    shape = found.shape
    pairs = {
        "hidden width": (shape.hidden, target.hidden),
        "vocabulary": (shape.vocab, target.vocab),
        "heads": (shape.heads, target.heads),
        "head size": (shape.head_size, target.head_size),
        "output groups": (shape.output_groups, target.output_groups),
        "output rank": (shape.output_rank, target.output_rank),
        "streams": (shape.streams, target.streams),
    }
    wrong = [f"{what} {mine}, target {its}" for what, (mine, its) in pairs.items() if mine != its]
    if found.taps[-1] >= target.layers:
        wrong.append(f"taps layer {found.taps[-1]}, target has {target.layers} layers")
    return wrong
