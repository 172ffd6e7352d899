"""Checkpoints become GGUF files with the same values, under any names and in any of the published number formats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import checkpoints
import gguf
import numpy as np
import pytest
import real_vocabulary
from checkpoints import LAYER, Raw, golden, write_tokenizer
from converting import assert_same, convert, metadata, tensors
from device import open_engine
from gguf_tools import DRAFTER, TARGET
from paths import GOLDEN
from safetensors import safe_open
from safetensors.numpy import save_file

import ds4py
from ds4py.converter.source.fp8 import e8m0
from ds4py.converter.source.read_config import read_config
from ds4py.converter.source.safetensors import read_header
from ds4py.converter.source.tokenizer import tokenizer

MODULES = {
    "attn_norm.weight": "input_layernorm.weight", "ffn_norm.weight": "post_attention_layernorm.weight",
    "attn.attn_sink": "self_attn.sinks", "attn.wq_a.weight": "self_attn.q_a_proj.weight",
    "attn.q_norm.weight": "self_attn.q_a_norm.weight", "attn.wq_b.weight": "self_attn.q_b_proj.weight",
    "attn.wkv.weight": "self_attn.kv_proj.weight", "attn.kv_norm.weight": "self_attn.kv_norm.weight",
    "attn.wo_a.weight": "self_attn.o_a_proj.weight", "attn.wo_b.weight": "self_attn.o_b_proj.weight",
    "attn.compressor.wkv.weight": "self_attn.compressor.kv_proj.weight",
    "attn.compressor.wgate.weight": "self_attn.compressor.gate_proj.weight",
    "attn.compressor.ape": "self_attn.compressor.position_bias",
    "attn.compressor.norm.weight": "self_attn.compressor.kv_norm.weight",
    "attn.indexer.wq_b.weight": "self_attn.compressor.indexer.q_b_proj.weight",
    "attn.indexer.weights_proj.weight": "self_attn.compressor.indexer.scorer.weights_proj.weight",
    "attn.indexer.compressor.wkv.weight": "self_attn.compressor.indexer.kv_proj.weight",
    "attn.indexer.compressor.wgate.weight": "self_attn.compressor.indexer.gate_proj.weight",
    "attn.indexer.compressor.ape": "self_attn.compressor.indexer.position_bias",
    "attn.indexer.compressor.norm.weight": "self_attn.compressor.indexer.kv_norm.weight",
    "ffn.gate.weight": "mlp.gate.weight", "ffn.gate.bias": "mlp.gate.e_score_correction_bias",
    "ffn.gate.tid2eid": "mlp.gate.tid2eid", "ffn.shared_experts.w1.weight": "mlp.shared_experts.gate_proj.weight",
    "ffn.shared_experts.w3.weight": "mlp.shared_experts.up_proj.weight",
    "ffn.shared_experts.w2.weight": "mlp.shared_experts.down_proj.weight",
}  # fmt: skip
MODULES |= {f"hc_{part}_{what}": f"{part}_hc.{what}" for part in ("attn", "ffn") for what in ("fn", "base", "scale")}
TOP = {
    "embed.weight": "model.embed_tokens.weight", "head.weight": "lm_head.weight", "norm.weight": "model.norm.weight",
    "hc_head_fn": "model.hc_head.hc_fn", "hc_head_base": "model.hc_head.hc_base",
    "hc_head_scale": "model.hc_head.hc_scale",
}  # fmt: skip


@pytest.fixture(scope="module")
def mixture(tmp_path_factory) -> tuple[checkpoints.Checkpoint, Path]:
    """A checkpoint with drafter in the published mixture of formats, and its folder."""
    made = golden("fp8", drafter=True)
    folder = made.write(tmp_path_factory.mktemp("mixture"))
    write_tokenizer(folder)
    return made, folder


@pytest.mark.parametrize("formats", ["f32", "bf16"])
def test_golden_pair_comes_back_to_the_byte(tmp_path: Path, formats: str) -> None:
    source = golden(formats, drafter=True).write(tmp_path / "checkpoint")
    convert(source, tmp_path / "target.gguf", "--drafter", tmp_path / "drafter.gguf", "--preset", "f32")
    assert_same(tmp_path / "target.gguf", TARGET)
    assert_same(tmp_path / "drafter.gguf", DRAFTER)


def test_names_of_transformers_modules(tmp_path: Path) -> None:
    """Written by the format's own library, from one file without an index; experts stacked, gate rows before up."""
    found: dict[str, np.ndarray] = {}
    experts: dict[str, dict[str, np.ndarray]] = {}
    for name, value in checkpoints.named_values(drafter=False):
        if ".experts." in name:
            layer, expert = name.split(".")[1], name.split(".experts.")[1].removesuffix(".weight")
            experts.setdefault(layer, {})[expert] = value
        elif name in TOP:
            found[TOP[name]] = value
        else:
            _, layer, rest = name.split(".", 2)
            found[f"model.layers.{layer}.{MODULES[rest]}"] = value
    for layer, each in experts.items():
        numbers = range(len(each) // 3)
        joined = [np.concatenate([each[f"{number}.w1"], each[f"{number}.w3"]]) for number in numbers]
        found[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = np.stack(joined)
        found[f"model.layers.{layer}.mlp.experts.down_proj"] = np.stack([each[f"{number}.w2"] for number in numbers])
    save_file(found, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(checkpoints.config(drafter=False)))
    assert_same(convert(tmp_path, tmp_path / "target.gguf", "--preset", "f32"), TARGET)


def test_checkpoint_of_transformers_gives_its_logits(tmp_path: Path) -> None:
    path = convert(GOLDEN / "hf", tmp_path / "target.gguf", "--preset", "f32")
    wanted = np.load(GOLDEN / "hf" / "logits.npz")
    with open_engine(path, threads=1) as engine, engine.session(context=512, kv_dtype="f32") as session:
        found = session.evaluate(wanted["tokens"])
    assert np.abs(found - wanted["logits"]).max() < 2e-4
    assert np.array_equal(found.argmax(axis=1), wanted["logits"].argmax(axis=1))


def test_fp8_and_fp4_values_are_exact(tmp_path: Path, mixture) -> None:
    made, folder = mixture
    found = tensors(convert(folder, tmp_path / "target.gguf", "--preset", "f32"))
    checked = 0
    for name, tensor in found.items():
        if name.startswith("blk."):
            _, layer, suffix = name.split(".", 2)
            if suffix in LAYER:
                assert np.array_equal(tensor.data, made.values[f"layers.{layer}.{LAYER[suffix]}"]), name
            else:
                part = checkpoints.EXPERTS[suffix]
                for expert, matrix in enumerate(tensor.data):
                    wanted = made.values[f"layers.{layer}.ffn.experts.{expert}.{part}.weight"]
                    assert np.array_equal(matrix, wanted), (name, expert)
            checked += 1
    assert checked > 150


def test_every_scale() -> None:
    """All 255 powers of E8M0, and its NaN."""
    scales = e8m0(np.arange(255, dtype=np.uint8))
    assert np.array_equal(scales.astype(np.float64), 2.0 ** (np.arange(255) - 127))
    assert np.isnan(e8m0(np.array([255], np.uint8))[0])


def test_mxfp4_experts_are_taken_over_bit_for_bit(tmp_path: Path, mixture) -> None:
    made, folder = mixture
    found = tensors(convert(folder, tmp_path / "target.gguf", "--preset", "mxfp4"))
    for layer in range(6):
        for suffix, part in checkpoints.EXPERTS.items():
            tensor = found[f"blk.{layer}.{suffix}"]
            assert tensor.tensor_type == gguf.GGMLQuantizationType.MXFP4
            for expert, data in enumerate(tensor.data):
                name = f"layers.{layer}.ffn.experts.{expert}.{part}"
                assert np.array_equal(
                    data.reshape(-1, 17), mxfp4(made.tensors[name + ".weight"], made.tensors[name + ".scale"])
                )
                values = gguf.quants.dequantize(data, gguf.GGMLQuantizationType.MXFP4)
                assert np.array_equal(values, made.values[name + ".weight"])


def mxfp4(weight: Raw, scale: Raw) -> np.ndarray:
    """Blocks of ggml, element by element."""
    packed = np.frombuffer(weight.data, np.uint8).reshape(-1, 16)
    blocks = []
    for codes, exponent in zip(packed, np.frombuffer(scale.data, np.uint8), strict=True):
        elements = [code >> shift & 15 for code in codes for shift in (0, 4)]
        blocks.append([exponent, *(elements[j] | elements[j + 16] << 4 for j in range(16))])
    return np.array(blocks, np.uint8)


def test_the_mixture_runs(tmp_path: Path, mixture) -> None:
    """Every preset of the mixture loads and gives finite logits."""
    for preset in ("mxfp4", "q8", "q4"):
        path = convert(mixture[1], tmp_path / f"{preset}.gguf", "--preset", preset)
        with open_engine(path, threads=1) as engine, engine.session(context=128) as session:
            assert np.isfinite(session.evaluate([3, 4, 5, 6, 7] * 8)).all()


def test_metadata_of_a_target(tmp_path: Path, mixture) -> None:
    """The golden files' keys with their types, which llama.cpp loads, and what a file says of its origin."""
    drafter = tmp_path / "drafter.gguf"
    flags = ("--name", "Tiny", "--preset", "mxfp4", "--drafter", drafter)
    found = metadata(convert(mixture[1], tmp_path / "target.gguf", *flags))
    for path, golden_path in ((tmp_path / "target.gguf", TARGET), (drafter, DRAFTER)):
        types = {key: field.types for key, field in gguf.GGUFReader(path).fields.items()}
        wanted = {key: field.types for key, field in gguf.GGUFReader(golden_path).fields.items()}
        assert {key: types.get(key) for key in wanted} == wanted
    for key, value in metadata(TARGET).items():
        if key.startswith(("deepseek4.", "tokenizer.")) and key != "tokenizer.ggml.pre":
            assert found[key] == value, key
    assert found["tokenizer.ggml.pre"] == "joyai-llm"
    assert found["tokenizer.chat_template"] == "{{ messages }}"
    assert found["general.name"] == "Tiny"
    assert found["general.file_type"] == gguf.LlamaFileType.MOSTLY_MXFP4_MOE
    assert found["general.source.name"] == mixture[1].name
    assert found["general.converter"] == f"ds4py {ds4py.__version__}"


def test_the_tokenizer_is_the_golden_one(tmp_path: Path, mixture) -> None:
    path = convert(mixture[1], tmp_path / "target.gguf", "--preset", "q8")
    text = "The session's state 1234567 <|eos|>"
    with open_engine(path, threads=1) as engine, open_engine(TARGET, threads=1) as wanted:
        assert engine.tokenizer.encode(text) == wanted.tokenizer.encode(text)


def test_the_published_vocabulary(tmp_path: Path) -> None:
    """The tokenizer file of DeepSeek-V4 itself."""
    shutil.copy(real_vocabulary.SOURCE, tmp_path / "tokenizer.json")
    (tmp_path / "config.json").write_text(json.dumps(checkpoints.config(drafter=False) | {"vocab_size": 129280}))
    found = tokenizer(tmp_path, read_config(tmp_path))
    for key, value in real_vocabulary.metadata().items():
        if key != "tokenizer.ggml.token_type":
            assert found[key].value == value, key
    kinds, tokens = found["tokenizer.ggml.token_type"].value, found["tokenizer.ggml.tokens"].value
    assert [kinds[tokens.index(token)] for token in ("<｜User｜>", "<|EOT|>", "<think>", "｜DSML｜", "the")] == [
        3,
        3,
        4,
        4,
        1,
    ]


def test_chat_template_from_a_file(tmp_path: Path, mixture) -> None:
    jinja = tmp_path / "mine.jinja"
    jinja.write_text("{# mine #}")
    found = metadata(convert(mixture[1], tmp_path / "target.gguf", "--chat-template", jinja))
    assert found["tokenizer.chat_template"] == "{# mine #}"


def test_without_a_tokenizer_the_file_takes_ids(tmp_path: Path) -> None:
    path = convert(GOLDEN / "hf", tmp_path / "target.gguf")
    assert metadata(path)["tokenizer.ggml.model"] == "none"
    assert metadata(path)["tokenizer.ggml.bos_token_id"] == 0


def test_only_the_shards_of_the_drafter_are_needed(tmp_path: Path, mixture) -> None:
    made, _ = mixture
    folder = made.write(tmp_path / "checkpoint")
    for number in (1, 2):
        (folder / f"model-{number:05}-of-00005.safetensors").unlink()
    convert(folder, tmp_path / "drafter.gguf", "--dspark-only", "--preset", "f32")
    assert len(tensors(tmp_path / "drafter.gguf")) == 81


def test_header_agrees_with_the_format_s_own_library(tmp_path: Path, mixture) -> None:
    path = mixture[1] / "model-00001-of-00005.safetensors"
    found = read_header(path)
    with safe_open(path, "numpy") as file:
        assert set(file.keys()) == set(found)
        for name in file.keys():  # noqa: SIM118 - it is not a dictionary
            view = file.get_slice(name)
            assert (view.get_dtype(), tuple(view.get_shape())) == (found[name].dtype, found[name].shape)


def test_fp4_in_wider_types(tmp_path: Path, mixture) -> None:
    """FP4 experts as F16 are exact as well: they have two significant bits."""
    made, folder = mixture
    found = tensors(convert(folder, tmp_path / "target.gguf", "--preset", "f16"))
    wanted = made.values["layers.4.ffn.experts.5.w3.weight"]
    assert np.array_equal(found["blk.4.ffn_up_exps.weight"].data[5].astype(np.float32), wanted)
