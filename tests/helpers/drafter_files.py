"""Writes the golden drafter again: in every contract there is, with any type of head, and with anything wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import gguf_tools as tools
import numpy as np
import synthetic
from device import DEVICE
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as V

from ds4py import _native

CONTRACTS = ("dflash", "lucebox", "ds4", "dspark-only", "relayout")
STAGES, HIDDEN, VOCAB, RANK, NOISE, BLOCK, TAPS = 3, 64, 512, 32, 511, 5, [3, 4, 5]
W1, W2, CONFIDENCE = "markov_w1.weight", "markov_w2.weight", "conf_proj.weight"

_MTP = {
    "fc.weight": "mtp.0.main_proj.weight", "enc.output_norm.weight": "mtp.0.main_norm.weight",
    "output_norm.": "mtp.LAST.norm.", "output_hc_": "mtp.LAST.hc_head_", "markov_": "mtp.LAST.markov_head.markov_",
    "conf_proj.": "mtp.LAST.confidence_head.proj.", "blk.": "mtp.",
}  # fmt: skip
PREFIXES: dict[str, dict[str, str]] = {
    "dflash": {},
    "lucebox": {
        "fc.weight": "dflash.fc.weight", "enc.output_norm.weight": "dflash.hidden_norm.weight",
        W1: "dflash.dspark.markov.w1", W2: "dflash.dspark.markov.w2", "conf_proj.": "dflash.dspark.confidence.",
    },
    "ds4": _MTP,
    "dspark-only": _MTP,
    "relayout": {
        "fc.weight": "dspark.main_proj.weight", "enc.output_norm.weight": "dspark.main_norm.weight",
        "output_norm.": "dspark.norm.", "output_hc_": "dspark.hc_head_", "markov_": "dspark.markov_",
        "conf_proj.": "dspark.conf_proj.", "blk.": "dspark.",
    },
}  # fmt: skip
"""What the beginning of a llama.cpp name is in each contract; without an entry it is the same. LAST: last stage."""

Key = tuple[Any, Any]


def u32(value: int) -> Key:
    return V.UINT32, value


def array(values: list[int], kind: V = V.UINT32) -> Key:
    return (V.ARRAY, kind), values


@cache
def _golden() -> tuple[dict[str, Key], dict[str, np.ndarray]]:
    reader = gguf.GGUFReader(tools.DRAFTER)
    return _keys(reader), {tensor.name: np.array(tensor.data) for tensor in reader.tensors}


@cache
def _template() -> dict[str, Key]:
    return _keys(gguf.GGUFReader(tools.TARGET))


def _keys(reader: gguf.GGUFReader) -> dict[str, Key]:
    fields = {key: found for key, found in reader.fields.items() if not key.startswith("GGUF.")}
    return {key: (tuple(found.types), found.contents()) for key, found in fields.items()}


def _lucebox_keys() -> dict[str, Key]:
    name = "deepseek4-dflash-draft"
    said = {
        "block_count": u32(STAGES), "embedding_length": u32(HIDDEN), "vocab_size": u32(VOCAB),
        "dflash.block_size": u32(BLOCK), "dflash.mask_token_id": u32(NOISE),
        "dflash.capture_layer_ids": array(TAPS), "dflash.n_target_layers": u32(len(TAPS)),
        "dflash.head_hc_enabled": (V.BOOL, True), "dflash.dspark.enabled": (V.BOOL, True),
        "dflash.dspark.vocab_size": u32(VOCAB), "dflash.dspark.markov_rank": u32(RANK),
        "dflash.dspark.confidence_dim": u32(HIDDEN + RANK), "dflash.dspark.confidence.enabled": (V.BOOL, True),
    }  # fmt: skip
    return {"general.architecture": (V.STRING, name)} | {f"{name}.{key}": value for key, value in said.items()}


def _dspark_keys(prefix: str, count: str, taps: Mapping[str, Key]) -> dict[str, Key]:
    said = {count: STAGES, "block_size": BLOCK, "markov_rank": RANK, "noise_token_id": NOISE}
    return {prefix + key: u32(value) for key, value in said.items()} | {prefix + k: v for k, v in taps.items()}


def keys_of(contract: str) -> dict[str, Key]:
    """Returns the metadata that files of `contract` carry."""
    named: dict[str, Key] = {"general.architecture": (V.STRING, "deepseek4-dspark")}
    scalars = {f"target_layer_ids.{i}": u32(tap) for i, tap in enumerate(TAPS)}
    if contract == "dflash":
        return dict(_golden()[0])
    if contract == "lucebox":
        return _lucebox_keys()
    if contract == "ds4":
        return named | _dspark_keys("dspark.", "stage_count", {"target_layer_ids": array(TAPS)})
    if contract == "dspark-only":
        return _template() | _dspark_keys("deepseek4.dspark.", "n_mtp_layers", scalars)
    return named | _dspark_keys("deepseek4.dspark.", "layer_count", {"target_layers": array(TAPS, V.INT32)})


@dataclass
class DrafterFile:
    """A drafter to be: change keys, tensors and their types, then `write`."""

    contract: str = "dflash"
    keys: dict[str, Key] = field(default_factory=dict)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)
    """Tensors by llama.cpp's names; they are written by the contract's."""
    kinds: dict[str, Type] = field(default_factory=dict)
    """Types other than the array's, for llama.cpp's names."""
    last_stage: int = STAGES - 1

    def __post_init__(self) -> None:
        self.keys = keys_of(self.contract) | self.keys
        self.tensors = _golden()[1] | self.tensors
        if self.contract == "lucebox":
            self.tensors["conf_proj.bias"] = np.zeros(1, np.float32)

    def name(self, name: str) -> str:
        """Returns the contract's name for a tensor of llama.cpp's name."""
        for old, new in PREFIXES[self.contract].items():
            if name.startswith(old):
                return new.replace("LAST", str(self.last_stage)) + name.removeprefix(old)
        return name

    def remove(self, *patterns: str) -> DrafterFile:
        """Drops the keys and tensors (llama.cpp's names) that a pattern fits as a whole."""
        for entries in (self.keys, self.tensors):
            for name in [name for name in entries if any(re.fullmatch(pattern, name) for pattern in patterns)]:
                del entries[name]
        return self

    def with_stages(self, stages: int) -> DrafterFile:
        """Has other stages, each a copy of the first."""
        first = {name: data for name, data in self.tensors.items() if name.startswith("blk.0.")}
        self.remove(r"blk\..*", r".*(block_count|stage_count|n_mtp_layers|layer_count)")
        for stage in range(stages):
            self.tensors |= {name.replace("blk.0.", f"blk.{stage}."): data for name, data in first.items()}
        for key in ("dflash.swiglu_clamp_exp", "dflash.swiglu_clamp_shexp"):
            if key in self.keys:
                self.keys[key] = ((V.ARRAY, V.FLOAT32), [1.5] * stages)
        self.last_stage = stages - 1
        return self

    def with_heads(self, kind: Type) -> DrafterFile:
        """Writes the Markov matrices as `kind`, and the confidence head too where the type's blocks divide its row.

        A rank that the blocks do not divide is padded by zeros, which changes no result.
        """
        block = gguf.GGML_QUANT_SIZES[kind][0]
        padding = -RANK % block
        for name in (W1, W2, CONFIDENCE):
            self.tensors[name] = np.pad(_golden()[1][name], ((0, 0), (0, padding)))
        rows = HIDDEN + RANK + padding
        self.kinds |= {W1: kind, W2: kind, CONFIDENCE: Type.BF16 if rows % block else kind}
        said = {"markov_rank": RANK + padding, "confidence_dim": rows}
        self.keys |= {key: u32(said[end]) for key in self.keys for end in said if key.endswith(end)}
        return self

    def write(self, path: Path) -> Path:
        """Writes the file; returns `path`. One that is mapped there already keeps what it is."""
        path.unlink(missing_ok=True)
        writer = gguf.GGUFWriter(path, arch="")
        writer.kv_data[0].clear()
        for key, (kinds, value) in self.keys.items():
            writer.add_key_value(key, value, *(kinds if isinstance(kinds, tuple) else (kinds,)))
        for name, data in self.tensors.items():
            kind = self.kinds.get(name)
            packed = data if kind is None else synthetic.quantise(data, kind)
            writer.add_tensor(self.name(name), packed, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def open(self, folder: Path) -> _native.GgufFile:
        """Writes the file into a folder and opens it."""
        return _native.GgufFile.open(self.write(folder / "drafter.gguf"))

    def load(self, folder: Path) -> _native.Drafter:
        """Writes the file into a folder and loads it beside the tiny target."""
        return _native.Drafter.load(str(self.write(folder / "drafter.gguf")), tiny_target())


@cache
def tiny_target() -> _native.Model:
    """The golden target that the golden drafter drafts for."""
    return _native.Model.load(str(tools.TARGET), device=DEVICE)


def fields(found: Any) -> dict[str, Any]:
    """Returns the public attributes of a native object."""
    return {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}


def numbers(drafter: _native.Drafter) -> dict[str, Any]:
    """Returns all that a draft depends on beside the weights; the contract is none of it."""
    found = fields(drafter.hyperparameters)
    return found | {"stages": fields(found["stages"]), "contract": None}


@cache
def golden_numbers() -> dict[str, Any]:
    """Returns the numbers of the golden drafter itself."""
    return numbers(_native.Drafter.load(str(tools.DRAFTER), tiny_target()))
