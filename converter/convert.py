"""Plans the outputs of a conversion from a source. Nothing is written here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gguf import GGMLQuantizationType as Type

from ds4py.errors import FormatError, RequestError

from . import contracts, metadata, quantise
from .contracts import Contract
from .imatrix import Imatrix
from .plan import OutputFile, Tensor
from .presets import TypeSelector
from .roles import Role, Slot, drafter_slots, role_of, target_slots
from .source import names
from .source.checkpoint import STAGE, Checkpoint
from .source.gguf_file import GgufSource
from .source.rows import Rows, ZeroRows
from .source.tokenizer import tokenizer
from .values import Metadata, u32

CONFIDENCE = "mtp.{}.confidence_head.proj."


@dataclass(frozen=True)
class ConversionOptions:
    """The options of a conversion, apart from its paths.

    Attributes:
        types: chooses the type of each tensor.
        keep_types: keep the types of a GGUF file, except for overrides.
        contract: the contract of a drafter.
        imatrix: the importance matrix, or None.
        name: the value of `general.name`; None takes the name of the source.
        chat_template: a Jinja file to use instead of the checkpoint's chat template, or None.
    """

    types: TypeSelector
    keep_types: bool = False
    contract: Contract = Contract.DFLASH
    imatrix: Imatrix | None = None
    name: str | None = None
    chat_template: Path | None = None


def target(checkpoint: Checkpoint, path: Path, options: ConversionOptions) -> OutputFile:
    """Plans the target of a checkpoint. Raises FormatError naming a tensor or key that is wrong."""
    config = checkpoint.config
    tensors = []
    for slot in target_slots(config):
        slices = names.target_slices(checkpoint.naming, slot)
        tensors.append(tensor(options, slot, slot.name, [checkpoint.rows(slot, part) for part in slices]))
    for layer in range(config.hash_layers):  # hash layers do not choose by score, so they use no bias
        bias = Slot(f"blk.{layer}.exp_probs_b.bias", Role.VECTOR, (config.experts,))
        checkpoint.drop(names.target_slices(checkpoint.naming, bias)[0].name)
    checkpoint.require_all_used(lambda name: not STAGE.match(name))
    keys = {
        **metadata.general("deepseek4", name_of(checkpoint, options), options.types.preset, checkpoint.folder),
        **metadata.target(config),
        **provenance(options),
        **tokenizer(checkpoint.folder, config, options.chat_template),
    }
    return OutputFile(path, keys, tensors)


def drafter(checkpoint: Checkpoint, path: Path, options: ConversionOptions) -> OutputFile:
    """Plans the DSpark drafter of a checkpoint, in the contract of the options. Raises FormatError."""
    check_drafter(checkpoint)
    config, stages, contract = checkpoint.config, checkpoint.stages, options.contract
    confidence = confidence_width(checkpoint)
    bias = checkpoint.has(CONFIDENCE.format(stages - 1) + "bias")
    tensors = []
    for slot in drafter_slots(config, stages, confidence=confidence, bias=bias):
        parts = [checkpoint.rows(slot, part) for part in names.drafter_slices(slot, stages)]
        name = contracts.name_in(contract, slot.name, stages)
        tensors.append(tensor(options, slot, name, parts, contract))
    checkpoint.require_all_used(lambda name: STAGE.match(name) is not None)
    if contract == Contract.LUCEBOX:
        tensors += missing_bias(options, confidence, bias)
    keys = {
        **metadata.general(
            contracts.LAYOUTS[contract].architecture,
            name_of(checkpoint, options) + " DSpark",
            options.types.preset,
            checkpoint.folder,
        ),
        **contracts.metadata(contract, config, stages, confidence=confidence),
        **provenance(options),
    }
    if contract == Contract.DFLASH:  # only its reader looks for a vocabulary
        keys |= tokenizer(checkpoint.folder, config, options.chat_template)
    return OutputFile(path, keys, tensors)


def requantised(source: GgufSource, path: Path, options: ConversionOptions) -> OutputFile:
    """Plans the model of a GGUF file with other types. Names and metadata stay, except those of the quantisation.

    Raises FormatError for a file that is neither a target nor a DSpark drafter.
    """
    contract = contracts.recognise_contract(set(source.tensors))
    is_target = "token_embd.weight" in source.tensors and "blk.0.attn_q_a.weight" in source.tensors
    if contract is None and not (is_target and source.architecture() == "deepseek4"):
        raise FormatError(f"{source.paths[0]}: is neither a DeepSeek-V4 target nor a DSpark drafter")
    tensors = []
    for found in source.tensors.values():
        inner = found.name if contract is None else contracts.canonical(contract, found.name)
        role = role_of(inner)
        if role is None:
            raise FormatError(f"{source.paths[0]}: tensor '{found.name}' has no place in a DeepSeek-V4 model")
        if not (found.kind == Type.I32 if role == Role.TOKEN_MAP else quantise.has_values(found.kind)):
            raise FormatError(f"{source.paths[0]}: tensor '{found.name}' is of type {found.kind.name}: no {role.value}")
        slot, keep_type = Slot(inner, role, found.shape), found.kind if options.keep_types else None
        tensors.append(tensor(options, slot, found.name, found.parts(), contract, keep_type))
    keys = source.metadata
    if not options.keep_types:
        keys = {key: value for key, value in keys.items() if not key.startswith("quantize.imatrix.")}
        keys["general.file_type"] = u32(int(options.types.preset.file_type))
    return OutputFile(path, {**keys, **provenance(options)}, tensors)


def tensor(
    options: ConversionOptions,
    slot: Slot,
    name: str,
    parts: Sequence[Rows],
    contract: Contract | None = None,
    keep_type: Type | None = None,
) -> Tensor:
    """Plans the tensor of a slot, with the type that is chosen for it.

    Args:
        name: the name of the tensor in the output.
        parts: the matrices of the tensor.
        contract: the contract of a drafter; None for a target.
        keep_type: the type to keep unless it is overridden, or None.
    """
    kind = options.types.choose(slot, name, keep_type=keep_type, without_bf16=contract == Contract.DS4)
    importance = None
    if options.imatrix is not None and slot.role != Role.TOKEN_MAP:
        importance = options.imatrix.rows_for(slot, name)
    return Tensor(name, slot.shape, kind, tuple(parts), importance)


def check_drafter(checkpoint: Checkpoint) -> None:
    """Raises FormatError if the checkpoint has no DSpark drafter, and says what it has instead."""
    folder, stages = checkpoint.folder, checkpoint.stages
    if stages == 0:
        raise FormatError(f"{folder}: has no drafter (no tensors 'mtp.N.*'); --dspark-only wants a DSpark checkpoint")
    vanilla = next((name for name in ("e_proj", "h_proj", "enorm") if checkpoint.has(f"mtp.0.{name}.weight")), None)
    if vanilla is not None and not checkpoint.has("mtp.0.main_proj.weight"):
        raise FormatError(
            f"{folder}: holds a vanilla MTP block (tensor 'mtp.0.{vanilla}.weight'), not a DSpark drafter"
        )
    if checkpoint.config.dspark is None:
        raise FormatError(
            f"{folder / 'config.json'}: key 'dspark_block_size' is missing, though there are tensors 'mtp.*'"
        )
    ratios = checkpoint.config.draft_ratios
    if ratios and (len(ratios) < stages or any(ratios)):
        raise FormatError(
            f"{folder / 'config.json'}: key 'compress_ratios' ends in {list(ratios)}, wanted a 0 for each of the "
            f"{stages} stages of the drafter"
        )


def confidence_width(checkpoint: Checkpoint) -> int | None:
    """Returns the columns of the confidence head, or None if there is no head.

    The head reads the hidden state, with or without the row of the Markov head.
    """
    config, name = checkpoint.config, CONFIDENCE.format(checkpoint.stages - 1) + "weight"
    assert config.dspark is not None
    if not checkpoint.has(name):
        return None
    width = checkpoint.stored_tensor(name).shape[-1:]
    return config.hidden if width == (config.hidden,) else config.hidden + config.dspark.rank


def missing_bias(options: ConversionOptions, confidence: int | None, bias: bool) -> Iterable[Tensor]:
    """Yields a confidence bias of 0 if the checkpoint has no bias, because lucebox needs one.

    Raises RequestError for a drafter without a confidence head.
    """
    if confidence is None:
        raise RequestError(
            "--contract lucebox wants a confidence head, and this drafter has none; take another contract"
        )
    if not bias:
        name = contracts.name_in(Contract.LUCEBOX, "conf_proj.bias", 1)
        yield tensor(options, Slot("conf_proj.bias", Role.VECTOR, (1,)), name, [ZeroRows(name, 1)])


def provenance(options: ConversionOptions) -> Metadata:
    """Returns the metadata that name the importance matrix."""
    return {} if options.imatrix is None else options.imatrix.metadata()


def name_of(checkpoint: Checkpoint, options: ConversionOptions) -> str:
    """Returns the name of the model: the one of the options, or else that of the folder."""
    return options.name or checkpoint.folder.resolve().name
