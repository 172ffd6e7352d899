"""A drafter that does not fit its target is refused, with everything that does not fit in one message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gguf_tools as tools
import numpy as np
import pytest
from drafter_files import CONTRACTS, HIDDEN, DrafterFile, array, tiny_target, u32
from gguf import GGUFValueType as V

from ds4py import _native
from ds4py.errors import FormatError, PairError

F32 = V.FLOAT32
# Keys of the target, and what is said of the golden drafter beside such a target.
MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "hidden": (
        {"embedding_length": u32(128), "embedding_length_out": u32(512)},
        "the hidden size is 64, the target's 128",
    ),
    "heads": ({"attention.head_count": u32(8)}, "the number of heads is 4, the target's 8"),
    "head size": (
        {"attention.key_length": u32(512), "attention.value_length": u32(512)},
        "the head size is 256, the target's 512",
    ),
    "rope size": ({"rope.dimension_count": u32(32)}, "the rope size is 64, the target's 32"),
    "query rank": ({"attention.q_lora_rank": u32(64)}, "the query rank is 32, the target's 64"),
    "groups": ({"attention.output_group_count": u32(4)}, "the number of output groups is 2, the target's 4"),
    "output rank": ({"attention.output_lora_rank": u32(32)}, "the output rank is 16, the target's 32"),
    "window": ({"attention.sliding_window": u32(64)}, "the window is 32, the target's 64"),
    "used": ({"expert_used_count": u32(6)}, "the number of experts used is 3, the target's 6"),
    "normalising": ({"expert_weights_norm": (V.BOOL, False)}, "normalising of expert weights is on, the target's off"),
    "scale": ({"expert_weights_scale": (F32, 2.5)}, "the scale of routed experts is 1.5, the target's 2.5"),
    "clamps": (
        {"swiglu_clamp_exp": ((V.ARRAY, F32), [9.0, 9.0, 7.0, 7.0, 7.0, 7.0])},
        r"the clamp of routed experts is \[1.5, 1.5, 1.5\], the target's \[7, 7, 7\]",
    ),
    "shared clamps": (
        {"swiglu_clamp_shexp": (F32, 0.0)},
        r"the clamp of the shared expert is .*, the target's \[0, 0, 0\]",
    ),
    "rope base": ({"rope.freq_base": (F32, 5e5)}, "the rope base is 10000, the target's 500000"),
    "iterations": ({"hyper_connection.sinkhorn_iterations": u32(19)}, "Sinkhorn iterations is 20, the target's 19"),
    "hc epsilon": ({"hyper_connection.epsilon": (F32, 1e-5)}, "hyper-connection epsilon is 1e-06, the target's 1e-05"),
    "norm epsilon": (
        {"attention.layer_norm_rms_epsilon": (F32, 1e-5)},
        "the norm epsilon is 1e-06, the target's 1e-05",
    ),
    "taps": (
        {"block_count": u32(5), "hash_layer_count": u32(3)},
        "it taps layer 5, the target's are 0 to 4",
    ),
}


@cache
def vocabulary(rows: int) -> dict[str, np.ndarray]:
    return {"token_embd.weight": np.zeros((rows, HIDDEN), np.float32)}


def target_with(folder: Path, keys: Mapping[str, Any], **rest: Any) -> _native.Hyperparameters:
    """The numbers of the tiny target with other keys; its tensors need not follow."""
    named = {key if key.startswith("tokenizer.") else "deepseek4." + key: value for key, value in keys.items()}
    path = tools.edited(tools.TARGET, folder / "target.gguf", named, **rest)
    return _native.read_hyperparameters(_native.GgufFile.open(path))


def golden() -> _native.GgufFile:
    return _native.GgufFile.open(tools.DRAFTER)


@pytest.mark.parametrize("keys, message", MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_named(tmp_path: Path, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(PairError) as error:
        _native.read_drafter(golden(), target_with(tmp_path, keys))
    assert re.search("does not fit the target: .*" + message, str(error.value)), str(error.value)
    assert str(error.value).count(";") == 1, "one mismatch and what to do, no more"
    assert str(error.value).startswith(str(tools.DRAFTER))


def test_everything_is_in_one_message(tmp_path: Path) -> None:
    keys: dict[str, Any] = {}
    for each, _ in MISFITS.values():
        keys |= each
    with pytest.raises(PairError) as error:
        _native.read_drafter(golden(), target_with(tmp_path, keys))
    for name, (_, message) in MISFITS.items():
        assert re.search(message, str(error.value)), name


def test_another_vocabulary(tmp_path: Path) -> None:
    keys = {"vocab_size": u32(500), "tokenizer.ggml.tokens": None}
    target = target_with(tmp_path, keys, tensors=vocabulary(500))
    with pytest.raises(
        PairError, match=r"the vocabulary is 512, the target's 500; its noise token is 511, .* 0 to 499"
    ):
        _native.read_drafter(golden(), target)


def test_a_noise_token_outside(tmp_path: Path) -> None:
    draft = DrafterFile("ds4", keys={"dspark.noise_token_id": u32(512)})
    with pytest.raises(PairError, match="its noise token is 512, the target's ids are 0 to 511"):
        draft.load(tmp_path)


def test_a_tap_beyond_the_target(tmp_path: Path) -> None:
    draft = DrafterFile(keys={"dflash.target_layers": array([5, 6, 7])})
    with pytest.raises(PairError, match="it taps layer 6, the target's are 0 to 5"):
        draft.load(tmp_path)


def test_another_number_of_streams(tmp_path: Path) -> None:
    """Targets have four, so it is the drafter that is another here."""
    draft = DrafterFile("ds4")
    for name in draft.tensors:
        if "hc_" in name and "scale" not in name:
            columns = 2 if name.startswith("output_hc_") else 8
            shape = (columns, 2 * HIDDEN) if name.endswith("fn.weight") else (columns,)
            draft.tensors[name] = np.zeros(shape, np.float32)
    with pytest.raises(PairError, match="the number of streams is 2, the target's 4"):
        draft.load(tmp_path)


def test_fewer_experts_than_the_target_uses(tmp_path: Path) -> None:
    """What the drafter does not say is the target's."""
    target = target_with(tmp_path, {"expert_used_count": u32(16)})
    _native.read_drafter(DrafterFile("ds4").open(tmp_path), target)
    with pytest.raises(PairError, match="of its 2 experts 3 are used at once in the target"):
        with_experts(DrafterFile("ds4"), 2).load(tmp_path)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_number_of_experts_is_its_own(tmp_path: Path, contract: str) -> None:
    found = with_experts(DrafterFile(contract), 8).load(tmp_path)
    assert found.hyperparameters.stages.experts == 8
    assert tiny_target().hyperparameters.experts == 16


def with_experts(draft: DrafterFile, experts: int) -> DrafterFile:
    """The first experts of the golden drafter."""
    for name, data in draft.tensors.items():
        if re.search(r"_exps\.|exp_probs_b|ffn_gate_inp", name):
            draft.tensors[name] = data[:experts]
    for key in ("dflash.expert_count", "deepseek4.dspark.expert_count"):
        if key in draft.keys:
            draft.keys[key] = u32(experts)
    return draft


def test_what_a_file_does_not_say_is_the_target_s(tmp_path: Path) -> None:
    keys = {
        "attention.sliding_window": u32(64),
        "rope.freq_base": (F32, 5e5),
        "swiglu_clamp_exp": ((V.ARRAY, F32), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        "expert_weights_scale": (F32, 2.5),
        "hyper_connection.sinkhorn_iterations": u32(7),
    }
    stages = _native.read_drafter(DrafterFile("ds4").open(tmp_path), target_with(tmp_path, keys)).stages
    assert (stages.window, stages.rope_base, stages.compress_rope_base) == (64, 5e5, 5e5)
    assert (stages.routed_scale, stages.sinkhorn_iterations) == (2.5, 7)
    assert (stages.clamp_routed, stages.clamp_shared) == ([4.0, 5.0, 6.0], [1.5] * 3)


def test_a_broken_file_comes_before_a_pair_that_does_not_fit(tmp_path: Path) -> None:
    draft = DrafterFile(tensors={"blk.1.attn_kv.weight": np.zeros((64, 256), np.float32)})
    with pytest.raises(FormatError, match=r"'blk\.1\.attn_kv\.weight' has shape"):
        _native.read_drafter(draft.open(tmp_path), target_with(tmp_path, {"attention.sliding_window": u32(64)}))
