"""Drafters in every contract, and `--check` and `--compare` on sound and on wrong files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from checkpoints import golden
from converting import convert, metadata, tensors
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind
from gguf_tools import DRAFTER, TARGET, edited
from paths import GOLDEN

from ds4py.converter.cli import main

LUCEBOX = "deepseek4-dflash-draft.dflash."
NAMES = {
    "dflash": ("fc.weight", "enc.output_norm.weight", "output_norm.weight", "output_hc_fn.weight", "markov_w1.weight",
               "conf_proj.weight", "blk.1.attn_q_a.weight"),
    "lucebox": ("dflash.fc.weight", "dflash.hidden_norm.weight", "output_norm.weight", "output_hc_fn.weight",
                "dflash.dspark.markov.w1", "dflash.dspark.confidence.weight", "blk.1.attn_q_a.weight"),
    "ds4": ("mtp.0.main_proj.weight", "mtp.0.main_norm.weight", "mtp.2.norm.weight", "mtp.2.hc_head_fn.weight",
            "mtp.2.markov_head.markov_w1.weight", "mtp.2.confidence_head.proj.weight", "mtp.1.attn_q_a.weight"),
}  # fmt: skip
"""The same seven tensors in each contract."""

KEYS: dict[str, Mapping[str, Any]] = {
    "dflash": {
        "general.architecture": "dflash", "dflash.block_count": 3, "dflash.block_size": 5,
        "dflash.target_layers": [4, 5, 6], "tokenizer.ggml.mask_token_id": 511, "dflash.sample_from_anchor": True,
        "dflash.has_confidence_head": True, "dflash.attention.causal": False, "dflash.hash_layer_count": 0,
        "dflash.attention.compress_ratios": [0, 0, 0],
    },
    "lucebox": {
        "general.architecture": "deepseek4-dflash-draft", "deepseek4-dflash-draft.block_count": 3,
        LUCEBOX + "block_size": 5, LUCEBOX + "mask_token_id": 511, LUCEBOX + "capture_layer_ids": [3, 4, 5],
        LUCEBOX + "n_target_layers": 3, LUCEBOX + "head_hc_enabled": True, LUCEBOX + "dspark.enabled": True,
        LUCEBOX + "dspark.markov_rank": 32, LUCEBOX + "dspark.vocab_size": 512,
        LUCEBOX + "dspark.confidence.enabled": True, LUCEBOX + "dspark.confidence_dim": 96,
    },
    "ds4": {
        "general.architecture": "deepseek4-dspark", "dspark.stage_count": 3, "dspark.block_size": 5,
        "dspark.noise_token_id": 511, "dspark.markov_rank": 32, "dspark.target_layer_ids": [3, 4, 5],
        "deepseek4.dspark.n_mtp_layers": 3, "deepseek4.dspark.target_layer_ids.0": 3,
        "deepseek4.dspark.target_layer_ids.2": 5, "deepseek4.dspark.noise_token_id": 511,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def drafters(tmp_path_factory) -> dict[str, Path]:
    """The golden drafter in each contract, F32."""
    folder = tmp_path_factory.mktemp("drafters")
    source = golden("bf16", drafter=True).write(folder / "checkpoint")
    flags = ("--dspark-only", "--preset", "f32", "--contract")
    return {name: convert(source, folder / f"{name}.gguf", *flags, name) for name in NAMES}


@pytest.mark.parametrize("contract", NAMES)
def test_contract(drafters: dict[str, Path], contract: str) -> None:
    found, wanted = tensors(drafters[contract]), tensors(DRAFTER)
    for name, reference in zip(NAMES[contract], NAMES["dflash"], strict=True):
        assert np.array_equal(found[name].data, wanted[reference].data), name
    assert len(found) == (82 if contract == "lucebox" else 81)
    keys = metadata(drafters[contract])
    assert {key: keys.get(key) for key in KEYS[contract]} == KEYS[contract]
    assert "dflash.embedding_length_out" not in keys  # llama.cpp would read past the tensors


def test_lucebox_gets_the_bias_it_wants(drafters: dict[str, Path]) -> None:
    assert tensors(drafters["lucebox"])["dflash.dspark.confidence.bias"].data.tolist() == [0]
    kinds = {key: field.types[0] for key, field in gguf.GGUFReader(drafters["lucebox"]).fields.items()}
    assert kinds[LUCEBOX + "block_size"] == kinds[LUCEBOX + "mask_token_id"] == Kind.UINT32


@pytest.mark.parametrize("contract", NAMES)
def test_all_contracts_hold_the_same_drafter(drafters, contract: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--compare", str(DRAFTER), str(drafters[contract]), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unpaired"] == []
    assert {role["greatest_difference"] for role in found["roles"].values()} == {0}
    assert sum(role["tensors"] for role in found["roles"].values()) == 81


@pytest.mark.parametrize("contract", NAMES)
def test_types_suit_the_readers(tmp_path: Path, drafters, contract: str) -> None:
    """ds4's reader knows no BF16, and takes router, hyper-connections and Markov head as F16."""
    flags = ("--dspark-only", "--preset", "mxfp4", "--contract", contract)
    found = tensors(convert(drafters["dflash"].parent / "checkpoint", tmp_path / "drafter.gguf", *flags))
    prefix = "mtp" if contract == "ds4" else "blk"
    narrow = Type.F16 if contract == "ds4" else Type.BF16
    assert found[f"{prefix}.0.ffn_gate_inp.weight"].tensor_type == narrow
    assert found[f"{prefix}.0.ffn_up_exps.weight"].tensor_type == Type.MXFP4
    assert found[f"{prefix}.0.hc_ffn_fn.weight"].tensor_type == (Type.F16 if contract == "ds4" else Type.F32)
    assert found[NAMES[contract][4]].tensor_type == narrow


def checked(capsys: pytest.CaptureFixture[str], path: Path, *flags: object) -> dict[str, Any]:
    assert main(["--check", str(path), "--json", *map(str, flags)]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("contract", NAMES)
def test_check_of_a_drafter(drafters, contract: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(capsys, drafters[contract], "--target", TARGET)
    assert (found["kind"], found["contract"], found["stages"], found["block"]) == ("drafter", contract, 3, 5)
    assert (found["taps"], found["noise"], found["rank"], found["confidence"]) == ("3,4,5", 511, 32, "yes")


def test_check_of_the_golden_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, TARGET)["kind"] == "target"
    assert checked(capsys, TARGET)["warnings"] == ["the file carries no chat template"]
    assert checked(capsys, DRAFTER, "--target", TARGET)["contract"] == "dflash"


def test_ds4_file_under_the_targets_architecture(tmp_path: Path, drafters, capsys) -> None:
    """As ds4's own converter leaves it: the target's architecture, taps as three numbers."""
    gone = [key for key in metadata(drafters["ds4"]) if key.startswith("dspark.")]
    keys = {**dict.fromkeys(gone), "general.architecture": (Kind.STRING, "deepseek4")}
    assert checked(capsys, edited(drafters["ds4"], tmp_path / "c2.gguf", keys))["taps"] == "3,4,5"


def test_relayout(tmp_path: Path, drafters, capsys: pytest.CaptureFixture[str]) -> None:
    """The same drafter under the prefix `dspark.`."""
    single = {
        "mtp.0.main_proj": "main_proj", "mtp.0.main_norm": "main_norm", "mtp.2.norm": "norm",
        "mtp.2.hc_head_fn": "hc_head_fn", "mtp.2.hc_head_base": "hc_head_base", "mtp.2.hc_head_scale": "hc_head_scale",
        "mtp.2.markov_head.markov_w1": "markov_w1", "mtp.2.markov_head.markov_w2": "markov_w2",
        "mtp.2.confidence_head.proj": "conf_proj",
    }  # fmt: skip
    changes: dict[str, np.ndarray | None] = {}
    for name, tensor in tensors(drafters["ds4"]).items():
        new = single.get(name.removesuffix(".weight"))
        changes[name] = None
        changes["dspark." + (f"{new}.weight" if new else name.removeprefix("mtp."))] = np.array(tensor.data)
    path = edited(drafters["ds4"], tmp_path / "relayout.gguf", tensors=changes)
    assert checked(capsys, path)["contract"] == "relayout"


Change = Callable[[Path, Path], Path]


def keyed(**keys: Any) -> Change:
    found = {key.replace("__", "."): value for key, value in keys.items()}
    return lambda source, path: edited(source, path, found)


def tensored(name: str, value: np.ndarray | None, kind: Type | None = None) -> Change:
    quantise = {} if kind is None else {name: kind}
    return lambda source, path: edited(source, path, tensors={name: value}, quantise=quantise)


ONES = np.ones(64, np.float32)
WRONG: dict[str, tuple[Change, str]] = {
    "missing tensor": (tensored("blk.1.attn_kv.weight", None), "'blk.1.attn_kv.weight' is missing"),
    "missing head": (tensored("markov_w2.weight", None), "'markov_w2.weight' is missing"),
    "wrong shape": (tensored("blk.2.ffn_norm.weight", ONES[:32]), "'blk.2.ffn_norm.weight' has shape [32]"),
    "extra tensor": (tensored("blk.0.attn_compressor_kv.weight", np.ones((4, 64), np.float32)), "'blk.0.attn_comp"),
    "stages that do not follow": (
        tensored("blk.4.attn_norm.weight", ONES),
        "'dflash.block_count' is 3, but the tensors say 5",
    ),
    "quantised norm": (tensored("blk.0.attn_norm.weight", ONES, Type.Q8_0), "'blk.0.attn_norm.weight' (norms"),
    "integers": (tensored("fc.weight", np.ones((64, 192), np.int32)), "'fc.weight' (feature fusion) is of type I32"),
    "confidence of another width": (tensored("conf_proj.weight", np.ones((1, 70), np.float32)), "'conf_proj.weight'"),
    "no block size": (keyed(dflash__block_size=None), "no key gives the block"),
    "no noise token": (keyed(tokenizer__ggml__mask_token_id=None), "no key gives the noise"),
    "no taps": (keyed(dflash__target_layers=None), "no key says which target layers"),
    "block size too large": (keyed(dflash__block_size=(Kind.UINT32, 17)), "block size is 17"),
    "noise outside": (keyed(tokenizer__ggml__mask_token_id=(Kind.UINT32, 512)), "noise token is 512"),
    "taps by their outputs": (keyed(dflash__target_layers=((Kind.ARRAY, Kind.INT32), [0, 1, 2])), "[-1, 0, 1]"),
    "other stages": (keyed(dflash__block_count=(Kind.UINT32, 2)), "'dflash.block_count' is 2"),
    "other experts": (keyed(dflash__expert_count=(Kind.UINT32, 8)), "'dflash.expert_count' is 8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_of_a_wrong_drafter(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    change, words = WRONG[name]
    assert main(["--check", str(change(DRAFTER, tmp_path / "wrong.gguf"))]) == 3
    message = capsys.readouterr().err
    assert words in message and message.count("\n") == 1


def test_pair_that_does_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = convert(GOLDEN / "hf", tmp_path / "other.gguf")
    assert main(["--check", str(DRAFTER), "--target", str(other)]) == 3
    message = capsys.readouterr().err
    for words in (
        "does not fit",
        "vocabulary 512, target 256",
        "head size 256, target 128",
        "taps layer 5, target has 4",
    ):
        assert words in message


def test_check_of_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    version = bytearray(TARGET.read_bytes())
    version[4] = 4
    (tmp_path / "version.gguf").write_bytes(version)
    cases = {
        tmp_path / "version.gguf": "version",
        edited(TARGET, tmp_path / "tensor.gguf", tensors={"blk.2.attn_kv.weight": None}): "blk.2.attn_kv.weight",
        edited(TARGET, tmp_path / "llama.gguf", {"general.architecture": (Kind.STRING, "llama")}): "'llama'",
        tmp_path / "gone.gguf": "gone.gguf",
    }
    for path, words in cases.items():
        assert main(["--check", str(path)]) in (1, 3)
        assert words in capsys.readouterr().err
    assert main(["--check", str(TARGET), "--target", str(TARGET)]) == 3
    assert "is not a drafter" in capsys.readouterr().err


def test_check_warns_of_coarse_hyper_connections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = np.array(tensors(TARGET)["blk.1.hc_ffn_fn.weight"].data)
    path = edited(TARGET, tmp_path / "coarse.gguf", tensors={"blk.1.hc_ffn_fn.weight": data},
                  quantise={"blk.1.hc_ffn_fn.weight": Type.Q8_0})  # fmt: skip
    assert "'blk.1.hc_ffn_fn.weight' (hyper-connections) is Q8_0" in checked(capsys, path)["warnings"][0]


def test_compare_tells_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = np.array(tensors(TARGET)["blk.1.attn_kv.weight"].data)
    path = edited(TARGET, tmp_path / "other.gguf", tensors={"blk.1.attn_kv.weight": data * 1.5, "output.weight": None})
    assert main(["--compare", str(TARGET), str(path), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["unpaired"] == [f"'output.weight' is only in {TARGET}"]
    errors = {role: value["relative_error"] for role, value in found["roles"].items() if value["relative_error"]}
    assert list(errors) == ["attention"]
    everything = [np.array(tensor.data) for name, tensor in tensors(TARGET).items() if is_attention(name)]
    wanted = 0.5 * np.linalg.norm(data) / np.sqrt(sum(np.square(each, dtype=np.float64).sum() for each in everything))
    assert errors["attention"] == pytest.approx(wanted, rel=1e-6)
    assert main(["--compare", str(TARGET), str(path)]) == 3
    assert "greatest difference" in capsys.readouterr().out


def is_attention(name: str) -> bool:
    return any(part in name for part in ("attn_q_a.w", "attn_q_b.w", "attn_kv.w", "attn_output_"))
