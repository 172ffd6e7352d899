"""The tensors a target must have: every one by name, with its shape, its type, and experts that exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import gguf_tools as tools
import numpy as np
import pytest

from ds4py import _native
from ds4py.errors import FormatError

Q8_0 = gguf.GGMLQuantizationType.Q8_0
TARGET_NAMES = [tensor.name for tensor in _native.GgufFile.open(tools.TARGET).tensors()]


@pytest.fixture
def edit(tmp_path: Path) -> Callable[..., _native.GgufFile]:
    """Opens a copy of the tiny target with other tensors."""

    def edit(**changes: Any) -> _native.GgufFile:
        return _native.GgufFile.open(tools.edited(tools.TARGET, tmp_path / "edited.gguf", **changes))

    return edit


def zeros(*shape: int) -> np.ndarray:
    """In ggml's order."""
    return np.zeros(shape[::-1], np.float32)


def check(file: _native.GgufFile) -> None:
    _native.check_weights(file, _native.read_hyperparameters(file))


@pytest.mark.parametrize("name", sorted(set(TARGET_NAMES) - {"output.weight", "token_embd.weight"}))
def test_every_tensor_is_required(name: str, tmp_path: Path) -> None:
    """Renamed in place, so that each of the many files is a plain copy."""
    data = tools.TARGET.read_bytes()
    old = tools.string(name.encode())
    assert data.count(old) == 1
    path = tmp_path / "renamed.gguf"
    path.write_bytes(data.replace(old, tools.string(b"x" + name[1:].encode())))
    with pytest.raises(FormatError, match=f"'{re.escape(name)}' is missing, wanted shape "):
        check(_native.GgufFile.open(path))


def test_a_tied_head_and_unknown_tensors(edit: Callable[..., _native.GgufFile]) -> None:
    check(edit(tensors={"output.weight": None, "blk.0.exp_probs_b_vl.bias": zeros(16), "other": zeros(3, 5)}))


def test_no_embedding(edit: Callable[..., _native.GgufFile]) -> None:
    with pytest.raises(FormatError, match=r"'token_embd\.weight' is missing"):
        check(edit(tensors={"token_embd.weight": None}))


MAP = "blk.1.ffn_gate_tid2eid.weight"
SHAPES = {
    "blk.0.attn_kv.weight": (zeros(64, 128), r"shape \(64, 128\), wanted \(64, 256\)"),
    "blk.2.attn_compressor_kv.weight": (zeros(64, 256), r"shape \(64, 256\), wanted \(64, 512\)"),
    "blk.3.attn_compressor_ape.weight": (zeros(256, 4), r"shape \(256, 4\), wanted \(256, 128\)"),
    "blk.5.ffn_down_exps.weight": (zeros(64, 32, 16), r"shape \(64, 32, 16\), wanted \(32, 64, 16\)"),
    "blk.4.hc_ffn_fn.weight": (zeros(256, 8), r"shape \(256, 8\), wanted \(256, 24\)"),
    "output_hc_scale.weight": (zeros(3), r"shape \(3\), wanted \(1\)"),
    "blk.1.attn_sinks.weight": (np.zeros(4, np.int32), "type I32, wanted F32, F16 or BF16"),
    "blk.1.attn_q_a.weight": (np.zeros((32, 64), np.int8), "type I8, wanted a float or quantised type"),
    MAP: (zeros(3, 512), "type F32, wanted I32"),
    "blk.2.ffn_gate_tid2eid.weight": (np.zeros((512, 6), np.int32), r"shape \(6, 512\), wanted \(3, 512\)"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_wrong_shapes_and_types_are_named(edit: Callable[..., _native.GgufFile], name: str) -> None:
    data, message = SHAPES[name]
    with pytest.raises(FormatError, match=f"'{re.escape(name)}' (has|is of) {message}"):
        check(edit(tensors={name: data}))


@pytest.mark.parametrize("bad", [-1, 16, 2**31 - 1, -(2**31)])
def test_an_expert_out_of_range_is_named(edit: Callable[..., _native.GgufFile], bad: int) -> None:
    ids = np.zeros((512, 3), np.int32)
    ids[511, 2] = bad
    with pytest.raises(FormatError, match=f"'{MAP}' sends token 511 to expert {bad}, wanted 0 to 15"):
        check(edit(tensors={MAP: ids}))


def test_matrices_of_any_type_and_vectors_of_every_float(edit: Callable[..., _native.GgufFile]) -> None:
    kinds = {"blk.0.attn_q_a.weight": Q8_0, "blk.0.hc_attn_fn.weight": Q8_0, "output.weight": Q8_0}
    kinds |= {"blk.0.attn_norm.weight": gguf.GGMLQuantizationType.F16}
    kinds |= {"blk.0.attn_sinks.weight": gguf.GGMLQuantizationType.BF16}
    file = edit(quantise=kinds)
    assert {t.name: t.type for t in file.tensors() if t.name in kinds} == {n: k.name for n, k in kinds.items()}
    check(file)


def test_a_quantised_vector_is_refused(edit: Callable[..., _native.GgufFile]) -> None:
    with pytest.raises(FormatError, match=r"'output_norm\.weight' is of type Q8_0, wanted F32, F16 or BF16"):
        check(edit(quantise={"output_norm.weight": Q8_0}))
