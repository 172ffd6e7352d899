"""Defines the contracts of drafter files: names of tensors and metadata (docs/formats.md compares them).

Inside the converter, the tensors of a drafter have llama.cpp's names. A contract translates them to its own names and
back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from gguf import GGUFValueType as Kind

from .metadata import hyperparameters
from .source.config import DSpark, ModelConfig
from .values import Metadata, array, flag, text, u32


class Contract(Enum):
    """The format of a drafter file, named after the program that reads it."""

    DFLASH = "dflash"
    """llama.cpp."""
    LUCEBOX = "lucebox"
    DS4 = "ds4"
    """ds4's support file. ds4's own converter may write it under the architecture of the target."""
    RELAYOUT = "relayout"
    """Names with the prefix `dspark.`. It is read and checked, and never written."""


@dataclass(frozen=True)
class Layout:
    """The architecture and tensor names of a contract. `{last}` stands for the number of the last stage."""

    architecture: str
    stage: str
    names: dict[str, str]


_DS4_HEAD = "mtp.{last}.hc_head_"
LAYOUTS = {
    Contract.DFLASH: Layout("dflash", "blk.{}.", {}),
    Contract.LUCEBOX: Layout(
        "deepseek4-dflash-draft",
        "blk.{}.",
        {
            "fc.weight": "dflash.fc.weight",
            "enc.output_norm.weight": "dflash.hidden_norm.weight",
            "markov_w1.weight": "dflash.dspark.markov.w1",
            "markov_w2.weight": "dflash.dspark.markov.w2",
            "conf_proj.weight": "dflash.dspark.confidence.weight",
            "conf_proj.bias": "dflash.dspark.confidence.bias",
        },
    ),
    Contract.DS4: Layout(
        "deepseek4-dspark",
        "mtp.{}.",
        {
            "fc.weight": "mtp.0.main_proj.weight",
            "enc.output_norm.weight": "mtp.0.main_norm.weight",
            "output_norm.weight": "mtp.{last}.norm.weight",
            "output_hc_fn.weight": _DS4_HEAD + "fn.weight",
            "output_hc_base.weight": _DS4_HEAD + "base.weight",
            "output_hc_scale.weight": _DS4_HEAD + "scale.weight",
            "markov_w1.weight": "mtp.{last}.markov_head.markov_w1.weight",
            "markov_w2.weight": "mtp.{last}.markov_head.markov_w2.weight",
            "conf_proj.weight": "mtp.{last}.confidence_head.proj.weight",
            "conf_proj.bias": "mtp.{last}.confidence_head.proj.bias",
        },
    ),
    Contract.RELAYOUT: Layout(
        "deepseek4-dspark",
        "dspark.{}.",
        {
            "fc.weight": "dspark.main_proj.weight",
            "enc.output_norm.weight": "dspark.main_norm.weight",
            "output_norm.weight": "dspark.norm.weight",
            "output_hc_fn.weight": "dspark.hc_head_fn.weight",
            "output_hc_base.weight": "dspark.hc_head_base.weight",
            "output_hc_scale.weight": "dspark.hc_head_scale.weight",
            "markov_w1.weight": "dspark.markov_w1.weight",
            "markov_w2.weight": "dspark.markov_w2.weight",
            "conf_proj.weight": "dspark.conf_proj.weight",
            "conf_proj.bias": "dspark.conf_proj.bias",
        },
    ),
}

WRITTEN = (Contract.DFLASH, Contract.DS4, Contract.LUCEBOX)


def name_in(contract: Contract, name: str, stages: int) -> str:
    """Translates llama.cpp's name of a drafter tensor to a contract."""
    layout = LAYOUTS[contract]
    if name.startswith("blk."):
        _, stage, suffix = name.split(".", 2)
        return layout.stage.format(stage) + suffix
    return layout.names.get(name, name).format(last=stages - 1)


def canonical(contract: Contract, name: str) -> str:
    """Translates a contract's name of a drafter tensor to llama.cpp's, for any number of stages.

    Other names are returned as they are.
    """
    layout = LAYOUTS[contract]
    for inner, outer in layout.names.items():
        if re.fullmatch(re.escape(outer).replace(r"\{last\}", r"\d+"), name):
            return inner
    match = re.fullmatch(re.escape(layout.stage).replace(r"\{\}", r"(\d+)") + "(.+)", name)
    return f"blk.{match[1]}.{match[2]}" if match else name


def recognise_contract(names: set[str]) -> Contract | None:
    """Returns the contract that has these tensor names, or None.

    The architecture does not decide, because files of one contract differ in it.
    """
    for contract in (Contract.DS4, Contract.RELAYOUT, Contract.LUCEBOX, Contract.DFLASH):
        if name_in(contract, "fc.weight", 1) in names:
            return contract
    return None


def metadata(contract: Contract, config: ModelConfig, stages: int, *, confidence: int | None) -> Metadata:
    """Returns the metadata of a contract, without `general.*` and `tokenizer.*`.

    `confidence` is the width of the confidence head, or None for a drafter without one.
    """
    dspark = config.dspark
    assert dspark is not None
    if contract == Contract.DS4:
        return ds4_keys(dspark, stages)
    prefix = LAYOUTS[contract].architecture + "."
    shape = hyperparameters(prefix, config, (0,) * stages, 0)
    if contract == Contract.LUCEBOX:
        return {**shape, **lucebox_keys(prefix, config, dspark, confidence)}
    return {**shape, **dflash_keys(dspark, confidence)}


def dflash_keys(dspark: DSpark, confidence: int | None) -> Metadata:
    """Returns the keys of llama.cpp. It numbers a tap by the layer that reads it, so its ids are one higher."""
    return {
        "dflash.block_size": u32(dspark.block),
        "dflash.target_layers": array([tap + 1 for tap in dspark.taps], Kind.INT32),
        "dflash.sample_from_anchor": flag(True),
        "dflash.has_confidence_head": flag(confidence is not None),
        "dflash.attention.causal": flag(False),
        "tokenizer.ggml.mask_token_id": u32(dspark.noise),
    }


def lucebox_keys(prefix: str, config: ModelConfig, dspark: DSpark, confidence: int | None) -> Metadata:
    """Returns the keys of lucebox, whose reader accepts unsigned numbers only."""
    values = {
        "dflash.block_size": u32(dspark.block),
        "dflash.mask_token_id": u32(dspark.noise),
        "dflash.capture_layer_ids": array(dspark.taps, Kind.UINT32),
        "dflash.n_target_layers": u32(len(dspark.taps)),
        "dflash.head_hc_enabled": flag(True),
        "dflash.dspark.enabled": flag(True),
        "dflash.dspark.vocab_size": u32(config.vocab),
        "dflash.dspark.markov_rank": u32(dspark.rank),
        "dflash.dspark.confidence.enabled": flag(confidence is not None),
        "dflash.dspark.confidence_dim": u32(confidence or 0),
    }
    return {prefix + key: value for key, value in values.items()}


def ds4_keys(dspark: DSpark, stages: int) -> Metadata:
    """Returns the keys of ds4's support file, also under the names that ds4's `--dspark-only` writes."""
    values: Metadata = {
        "dspark.stage_count": u32(stages),
        "dspark.n_layers": u32(stages),
        "dspark.block_size": u32(dspark.block),
        "dspark.noise_token_id": u32(dspark.noise),
        "dspark.markov_rank": u32(dspark.rank),
        "dspark.target_layer_ids": array(dspark.taps, Kind.UINT32),
        "deepseek4.dspark.n_mtp_layers": u32(stages),
        "deepseek4.dspark.block_size": u32(dspark.block),
        "deepseek4.dspark.noise_token_id": u32(dspark.noise),
        "deepseek4.dspark.markov_rank": u32(dspark.rank),
    }
    for place, tap in enumerate(dspark.taps):
        values[f"deepseek4.dspark.target_layer_ids.{place}"] = u32(tap)
    values["dspark.source.layout"] = text("DeepSeek mtp.*")
    return values
