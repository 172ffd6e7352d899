"""Damaged drafters are refused with the tensor named: shapes, types, values, and what is missing, too much or cut."""

from __future__ import annotations

import re
from pathlib import Path

import gguf_tools as tools
import numpy as np
import pytest
from drafter_files import CONFIDENCE, CONTRACTS, W1, W2, DrafterFile, tiny_target
from gguf import GGMLQuantizationType as Type

from ds4py import _native
from ds4py.errors import FormatError

NAMES = sorted(DrafterFile().tensors)
FIRST = [name for name in NAMES if not re.match(r"blk\.[12]", name)]
VECTOR = re.compile(r"_(norm|sinks|base|scale)\.|\.bias$")


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_shape_is_named(tmp_path: Path, name: str) -> None:
    """One row or entry more than there should be, in a file whose metadata say what should be."""
    draft = DrafterFile()
    data = draft.tensors[name]
    draft.tensors[name] = np.concatenate([data, data[-1:]])
    with pytest.raises(FormatError, match=rf"tensor '{re.escape(name)}' has shape .*, wanted \("):
        draft.load(tmp_path)


@pytest.mark.parametrize("contract", ["ds4", "relayout"])
@pytest.mark.parametrize("name", FIRST)
def test_a_wrong_shape_is_seen_without_metadata(tmp_path: Path, contract: str, name: str) -> None:
    """Sizes come from some of the tensors there, so the one that is named may be another that no longer fits it."""
    draft = DrafterFile(contract)
    data = draft.tensors[name]
    draft.tensors[name] = np.concatenate([data, data[-1:]])
    with pytest.raises(FormatError, match=r"tensor '.*' has shape|output groups"):
        draft.load(tmp_path)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_tensor_is_required(tmp_path: Path, contract: str) -> None:
    """The confidence head may be missing; without a Markov head or the fusion a llama.cpp file is no DSpark drafter."""
    whole = DrafterFile(contract)
    told_by = {whole.name(name) for name in ("fc.weight", *((W1,) if contract == "dflash" else ()))}
    for name in set(FIRST) - {CONFIDENCE}:
        draft = DrafterFile(contract)
        del draft.tensors[name]
        named = whole.name(name)
        message = "Markov|none of the tensors" if named in told_by else f"'{re.escape(named)}' is missing"
        with pytest.raises(FormatError, match=message):
            draft.load(tmp_path)


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("name", ["other", "blk.1.attn_compressor_kv.weight", "blk.9.other", "markov_w3.weight"])
def test_an_unknown_tensor_is_named(tmp_path: Path, contract: str, name: str) -> None:
    draft = DrafterFile(contract, tensors={name: np.zeros(4, np.float32)})
    message = (
        "draft stages" if name.startswith("blk.9.") else f"'{re.escape(draft.name(name))}' is unknown, wanted only"
    )
    with pytest.raises(FormatError, match=message):
        draft.load(tmp_path)


def test_a_bias_without_a_confidence_head(tmp_path: Path) -> None:
    draft = DrafterFile(tensors={"conf_proj.bias": np.zeros(1, np.float32)}).remove(r"conf_proj\.weight")
    with pytest.raises(FormatError, match=r"'conf_proj\.bias' is unknown"):
        draft.load(tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", [*filter(VECTOR.search, FIRST), CONFIDENCE, "conf_proj.bias"])
def test_values_must_be_finite(tmp_path: Path, name: str, value: float) -> None:
    draft = DrafterFile("lucebox")
    draft.tensors[name] = draft.tensors[name].copy()
    draft.tensors[name].flat[-1] = value
    at = draft.tensors[name].size - 1
    with pytest.raises(FormatError, match=f"'{re.escape(draft.name(name))}' holds -?(nan|inf) at {at}, wanted finite"):
        draft.load(tmp_path)


@pytest.mark.parametrize("kind", [Type.F16, Type.BF16])
def test_values_of_half_size_must_be_finite(tmp_path: Path, kind: Type) -> None:
    draft = DrafterFile(tensors={"output_norm.weight": np.full(64, np.nan, np.float32)})
    draft.kinds["output_norm.weight"] = kind
    with pytest.raises(FormatError, match=r"'output_norm\.weight' holds -?nan at 0"):
        draft.load(tmp_path)


@pytest.mark.parametrize("name", ["output_norm.weight", "blk.0.attn_sinks.weight", "conf_proj.bias"])
def test_vectors_of_integers(tmp_path: Path, name: str) -> None:
    draft = DrafterFile("lucebox")
    draft.tensors[name] = draft.tensors[name].astype(np.int32)
    with pytest.raises(FormatError, match=rf"'{re.escape(draft.name(name))}' is of type I32, wanted F32, F16 or BF16"):
        draft.load(tmp_path)


@pytest.mark.parametrize("name", ["fc.weight", W1, W2, CONFIDENCE, "blk.2.ffn_down_exps.weight"])
def test_matrices_of_integers(tmp_path: Path, name: str) -> None:
    draft = DrafterFile()
    draft.tensors[name] = draft.tensors[name].astype(np.int8)
    with pytest.raises(FormatError, match=rf"'{re.escape(name)}' is of type I8, wanted a float or quantised type"):
        draft.load(tmp_path)


def test_a_quantised_vector(tmp_path: Path) -> None:
    draft = DrafterFile(kinds={"enc.output_norm.weight": Type.Q8_0})
    with pytest.raises(FormatError, match=r"'enc\.output_norm\.weight' is of type Q8_0, wanted F32, F16 or BF16"):
        draft.load(tmp_path)


def test_nine_stages(tmp_path: Path) -> None:
    for contract in CONTRACTS:
        with pytest.raises(FormatError, match=r"has 9 draft stages .*wanted 1 to 8"):
            DrafterFile(contract).with_stages(9).load(tmp_path)


def test_no_stages(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has 0 draft stages \(tensors 'blk\.N"):
        DrafterFile().remove(r"blk\..*").load(tmp_path)


# --- bytes ------------------------------------------------------------------------------------------------------------

GOLDEN = tools.DRAFTER.read_bytes()


def load_bytes(folder: Path, data: bytes) -> None:
    (folder / "damaged.gguf").write_bytes(data)
    _native.Drafter.load(str(folder / "damaged.gguf"), tiny_target())


@pytest.mark.parametrize("version", [0, 1, 4, 99])
def test_other_versions(tmp_path: Path, version: int) -> None:
    with pytest.raises(FormatError, match=f"version {version}, wanted 2 or 3"):
        load_bytes(tmp_path, GOLDEN[:4] + tools.u32(version) + GOLDEN[8:])


def test_version_2(tmp_path: Path) -> None:
    load_bytes(tmp_path, GOLDEN[:4] + tools.u32(2) + GOLDEN[8:])


@pytest.mark.parametrize("size", [0, 3, 8, 23, 24, 100, 20_000, 30_000, len(GOLDEN) // 2, len(GOLDEN) - 1])
def test_a_cut_file(tmp_path: Path, size: int) -> None:
    with pytest.raises(FormatError, match=r"damaged\.gguf"):
        load_bytes(tmp_path, GOLDEN[:size])


def test_a_tensor_twice(tmp_path: Path) -> None:
    old, new = tools.string(W2.encode()), tools.string(W1.encode())
    assert GOLDEN.count(old) == 1
    with pytest.raises(FormatError, match=W1):
        load_bytes(tmp_path, GOLDEN.replace(old, new))
