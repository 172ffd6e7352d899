"""What is read from a target's metadata in every dialect, and what is refused: wrong keys and other files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf_tools as tools
import numpy as np
import pytest
from gguf import GGUFValueType as V

from ds4py import _native
from ds4py.errors import FormatError

Edits = Mapping[str, Any]
A = "deepseek4."


@pytest.fixture
def edit(tmp_path: Path) -> Callable[..., _native.GgufFile]:
    """Opens an edited copy of the tiny target; keys are given without `deepseek4.`."""

    def edit(keys: Edits | None = None, **rest: Any) -> _native.GgufFile:
        named = {
            key if "." in key and key.split(".")[0] in ("general", "tokenizer") else A + key: value
            for key, value in (keys or {}).items()
        }
        return _native.GgufFile.open(tools.edited(tools.TARGET, tmp_path / "edited.gguf", named, **rest))

    return edit


def fields(found: _native.Hyperparameters) -> dict[str, Any]:
    return {name: getattr(found, name) for name in dir(found) if not name.startswith("_")}


def read(path: Path) -> _native.Hyperparameters:
    file = _native.GgufFile.open(path)
    found = _native.read_hyperparameters(file)
    _native.check_weights(file, found)
    return found


TINY = fields(read(tools.TARGET))


def test_values_of_the_tiny_target() -> None:
    approximate = {"hc_epsilon": 1e-6, "norm_epsilon": 1e-6}
    for name, value in approximate.items():
        assert TINY[name] == pytest.approx(value)
    assert {name: value for name, value in TINY.items() if name not in approximate} == {
        "layers": 6, "hidden": 64, "vocab": 512, "context": 8192, "heads": 4, "head_size": 256, "rope_size": 64,
        "query_rank": 32, "output_groups": 2, "output_rank": 16, "window": 32, "ratios": [0, 0, 4, 128, 4, 128],
        "rope_base": 1e4, "compress_rope_base": 1.6e5, "yarn": True, "yarn_factor": 16, "yarn_beta_fast": 32,
        "yarn_beta_slow": 1, "yarn_original_context": 512, "index_heads": 8, "index_size": 128, "index_top_k": 8,
        "experts": 16, "experts_used": 3, "shared_experts": 1, "hash_layers": 3, "expert_widths": [32] * 6,
        "normalise_weights": True, "routed_scale": 1.5, "clamp_routed": [1.5] * 6, "clamp_shared": [1.5] * 6,
        "streams": 4, "sinkhorn_iterations": 20,
    }  # fmt: skip


def test_the_hard_target_differs_where_it_should() -> None:
    found = fields(read(tools.GOLDEN / "hard-target-f32.gguf"))
    assert found == TINY | {"index_heads": 32, "clamp_routed": [10.0] * 6, "clamp_shared": [10.0] * 6}


# Edits that change nothing of what is read.
SAME: dict[str, Edits] = {
    "without optional keys": dict.fromkeys(
        ["vocab_size", "swiglu_clamp_shexp", "embedding_length_out", "expert_gating_func"]
    ),
    "nextn without its tensors": {"nextn_predict_layers": (V.UINT32, 1)},
    "no groups": {"expert_group_count": (V.UINT32, 0), "expert_group_used_count": (V.UINT32, 0)},
    "one group": {"expert_group_count": (V.UINT32, 1), "expert_group_used_count": (V.UINT32, 1)},
    "no dense blocks": {"leading_dense_block_count": (V.UINT32, 0)},
    "swapped RoPE bases": {"rope.freq_base_swa": (V.FLOAT32, 1.6e5), "attention.compress_rope_freq_base": None},
    "swapped RoPE bases, the other way": {
        "rope.freq_base": (V.FLOAT32, 1.6e5),
        "rope.freq_base_swa": (V.FLOAT32, 1e4),
        "attention.compress_rope_freq_base": None,
    },
    "window base beside the compressed one": {"rope.freq_base_swa": (V.FLOAT32, 1e4)},
    "no tokens": {"tokenizer.ggml.tokens": None},
    "default betas": {"rope.scaling.yarn_beta_fast": None, "rope.scaling.yarn_beta_slow": None},
    "other integers": {
        "block_count": (V.UINT64, 6),
        "attention.head_count": (V.INT8, 4),
        "context_length": (V.INT64, 8192),
        "rope.freq_base": (V.UINT32, 10000),
        "expert_weights_scale": (V.FLOAT64, 1.5),
    },
}


@pytest.mark.parametrize("keys", SAME.values(), ids=SAME)
def test_dialects_read_the_same(edit: Callable[..., _native.GgufFile], keys: Edits) -> None:
    file = edit(keys)
    found = _native.read_hyperparameters(file)
    assert fields(found) == TINY
    _native.check_weights(file, found)


@pytest.mark.parametrize("kind", [V.INT32, V.UINT32, V.FLOAT32, V.UINT64, V.INT16])
@pytest.mark.parametrize("extra", [[], [0], [4, 0, 0, 0]])
def test_ratios_of_any_number_type_and_longer_than_the_layers(tmp_path: Path, kind: V, extra: list[int]) -> None:
    ratios = [0, 0, 4, 128, 4, 128, *extra]
    path = rewritten(tmp_path, "attention.compress_ratios", kind, ratios)
    assert fields(read(path)) == TINY


@pytest.mark.parametrize("kind, value", [(V.UINT32, 32), (V.FLOAT32, 32.0)])
def test_expert_width_per_layer(tmp_path: Path, kind: V, value: float) -> None:
    assert fields(read(rewritten(tmp_path, "expert_feed_forward_length", kind, [value] * 6))) == TINY


def test_scalar_clamp(edit: Callable[..., _native.GgufFile]) -> None:
    file = edit({"swiglu_clamp_exp": (V.FLOAT32, 7.0), "swiglu_clamp_shexp": None})
    found = _native.read_hyperparameters(file)
    assert found.clamp_routed == found.clamp_shared == [7.0] * 6


def rewritten(tmp_path: Path, key: str, kind: V, values: list[Any]) -> Path:
    return tools.edited(tools.TARGET, tmp_path / "edited.gguf", {A + key: ((V.ARRAY, kind), values)})


@pytest.mark.parametrize("kind", ["none", None])
def test_without_yarn(edit: Callable[..., _native.GgufFile], kind: str | None) -> None:
    scaling = ["type", "factor", "original_context_length", "yarn_beta_fast", "yarn_beta_slow"]
    keys: dict[str, Any] = {"rope.scaling." + name: None for name in scaling}
    if kind:
        keys["rope.scaling.type"] = (V.STRING, kind)
    found = _native.read_hyperparameters(edit(keys))
    assert (found.yarn, found.yarn_factor) == (False, 1)


REFUSED: dict[str, tuple[Edits, str]] = {
    "llama": ({"general.architecture": (V.STRING, "llama")}, "architecture 'llama' is not DeepSeek-V4"),
    "deepseek2": ({"general.architecture": (V.STRING, "deepseek2")}, "architecture 'deepseek2' is not"),
    "no architecture": ({"general.architecture": None}, "'general.architecture' is missing"),
    "architecture is a number": ({"general.architecture": (V.UINT32, 4)}, "the integer 4, wanted a string"),
    "ds4 support file": ({"general.architecture": (V.STRING, "deepseek4-dspark")}, "DSpark drafter.*-md"),
    "lucebox drafter": ({"general.architecture": (V.STRING, "deepseek4-dflash-draft")}, "DSpark drafter.*-md"),
    "no blocks": ({"block_count": (V.UINT32, 0)}, "block_count' is 0, wanted 1 to"),
    "missing blocks": ({"block_count": None}, "block_count' is missing"),
    "block count is text": ({"block_count": (V.STRING, "6")}, "the string '6', wanted an integer"),
    "2^31 blocks": ({"block_count": (V.UINT32, 2**31)}, "block_count' is 2147483648"),
    "negative hidden": ({"embedding_length": (V.INT32, -64)}, "embedding_length' is -64"),
    "stream width": ({"embedding_length_out": (V.UINT32, 64)}, "embedding_length_out' is 64, wanted 256"),
    "vocab size": ({"vocab_size": (V.UINT32, 511)}, "vocab_size' is 511, wanted 512"),
    "two kv heads": ({"attention.head_count_kv": (V.UINT32, 2)}, "head_count_kv' is 2, wanted 1"),
    "value size": ({"attention.value_length": (V.UINT32, 128)}, "value_length' is 128, wanted 256"),
    "odd rope": ({"rope.dimension_count": (V.UINT32, 63)}, "dimension_count' is 63, wanted an even"),
    "rope beyond the head": ({"rope.dimension_count": (V.UINT32, 258)}, "dimension_count' is 258, wanted 2 to 256"),
    "groups": ({"attention.output_group_count": (V.UINT32, 3)}, "is 3, wanted a divisor of the 4 heads"),
    "no window": ({"attention.sliding_window": (V.UINT32, 0)}, "sliding_window' is 0"),
    "three streams": ({"hyper_connection.count": (V.UINT32, 3)}, "hyper_connection.count' is 3, wanted 4"),
    "no iterations": ({"hyper_connection.sinkhorn_iterations": (V.UINT32, 0)}, "sinkhorn_iterations' is 0"),
    "NaN epsilon": ({"hyper_connection.epsilon": (V.FLOAT32, float("nan"))}, "epsilon' is -?nan"),
    "epsilon 0": ({"attention.layer_norm_rms_epsilon": (V.FLOAT32, 0.0)}, "rms_epsilon' is 0"),
    "infinite base": ({"rope.freq_base": (V.FLOAT32, float("inf"))}, "freq_base' is inf"),
    "no compressed base": ({"attention.compress_rope_freq_base": None}, "compress_rope_freq_base' is missing"),
    "linear scaling": ({"rope.scaling.type": (V.STRING, "linear")}, "type' is 'linear', wanted 'yarn' or 'none'"),
    "scaling of no type": ({"rope.scaling.type": None}, "rope.scaling.type' is missing, wanted 'yarn', since"),
    "no yarn factor": ({"rope.scaling.factor": None}, "scaling.factor' is missing"),
    "betas the other way": ({"rope.scaling.yarn_beta_fast": (V.FLOAT32, 0.5)}, "yarn_beta_fast' is 0.5, wanted 1 to"),
    "more used than there are": ({"expert_used_count": (V.UINT32, 17)}, "expert_used_count' is 17, wanted 1 to 16"),
    "gating": ({"expert_gating_func": (V.UINT32, 2)}, "expert_gating_func' is 2, wanted 4"),
    "expert groups": ({"expert_group_count": (V.UINT32, 8)}, "expert_group_count' is 8"),
    "dense blocks": ({"leading_dense_block_count": (V.UINT32, 1)}, "leading_dense_block_count' is 1, wanted 0"),
    "hash layers": ({"hash_layer_count": (V.UINT32, 7)}, "hash_layer_count' is 7, wanted 0 to 6"),
    "norm is a number": (
        {"expert_weights_norm": (V.UINT32, 1)},
        "expert_weights_norm' is the integer 1, wanted a bool",
    ),
    "norm is missing": ({"expert_weights_norm": None}, "expert_weights_norm' is missing"),
    "negative scale": ({"expert_weights_scale": (V.FLOAT32, -1.5)}, "expert_weights_scale' is -1.5"),
    "no clamp": ({"swiglu_clamp_exp": None}, "swiglu_clamp_exp' is missing"),
    "index size": ({"attention.indexer.key_length": (V.UINT32, 32)}, "key_length' is 32, wanted 64 to"),
    "no top k": ({"attention.indexer.top_k": None}, "indexer.top_k' is missing"),
    "ratios too short": (
        {"attention.compress_ratios": ((V.ARRAY, V.INT32), [0, 0, 4, 128, 4])},
        "array of 5, wanted 6",
    ),
    "ratio 8": ({"attention.compress_ratios": ((V.ARRAY, V.INT32), [0, 0, 8, 128, 4, 128])}, "8 in a layer.*0, 4 or"),
    "ratio 4.5": ({"attention.compress_ratios": ((V.ARRAY, V.FLOAT32), [0, 0, 4.5, 4, 4, 4])}, "wanted whole numbers"),
    "ratios are text": ({"attention.compress_ratios": ((V.ARRAY, V.STRING), ["0"] * 6)}, "6 strings, wanted numbers"),
    "clamps too short": ({"swiglu_clamp_exp": ((V.ARRAY, V.FLOAT32), [1.5] * 2)}, "array of 2, wanted 6"),
    "tokens too short": ({"tokenizer.ggml.tokens": ((V.ARRAY, V.STRING), ["a", "b"])}, "has 2 entries, wanted 512"),
}


@pytest.mark.parametrize("keys, message", REFUSED.values(), ids=REFUSED)
def test_wrong_metadata_is_named(edit: Callable[..., _native.GgufFile], keys: Edits, message: str) -> None:
    file = edit(keys)
    with pytest.raises(FormatError) as error:
        _native.read_hyperparameters(file)
    assert re.search(message, str(error.value)), str(error.value)
    assert str(error.value).startswith(file.paths[0])


def test_the_drafter_is_refused_with_the_hint() -> None:
    with pytest.raises(FormatError, match=r"DSpark drafter \(architecture 'dflash'\).*-md"):
        read(tools.DRAFTER)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape[::-1], np.float32)


TARGET_NAMES = [tensor.name for tensor in _native.GgufFile.open(tools.TARGET).tensors()]
NO_LAYERS = {name: None for name in TARGET_NAMES if name.startswith("blk.")}


@pytest.mark.parametrize("marker", ["mtp.0.main_proj.weight", "dspark.main_proj.weight", "dflash.fc.weight"])
def test_a_drafter_with_the_target_s_metadata_is_told_by_its_tensors(
    edit: Callable[..., _native.GgufFile], marker: str
) -> None:
    file = edit(tensors=NO_LAYERS | {marker: zeros(192, 64)})
    with pytest.raises(FormatError, match=rf"DSpark drafter \(tensor '{marker}'\)"):
        _native.read_hyperparameters(file)


@pytest.mark.parametrize("marker", ["mtp.0.e_proj.weight", "blk.6.nextn.eh_proj.weight"])
def test_a_file_with_nothing_but_mtp(edit: Callable[..., _native.GgufFile], marker: str) -> None:
    file = edit({"nextn_predict_layers": (V.UINT32, 1)}, tensors=NO_LAYERS | {marker: zeros(128, 64)})
    with pytest.raises(FormatError, match=f"vanilla MTP block.*{marker}"):
        _native.read_hyperparameters(file)


def test_mtp_blocks_beside_the_target_are_left_out(edit: Callable[..., _native.GgufFile]) -> None:
    keys = {"block_count": (V.UINT32, 7), "nextn_predict_layers": (V.UINT32, 1)}
    file = edit(keys, tensors={"blk.6.nextn.eh_proj.weight": zeros(128, 64)})
    found = _native.read_hyperparameters(file)
    assert fields(found) == TINY
    _native.check_weights(file, found)
