"""Damaged sources end with an error that names what is wrong, and leave nothing behind; interrupted runs go on."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import Checkpoint, Raw, golden, write_tokenizer
from converting import assert_same, convert
from gguf_tools import TARGET

from ds4py.converter import writer
from ds4py.converter.cli import main

SHARD = "model-00001-of-00005.safetensors"
INDEX = "model.safetensors.index.json"
QUERY, EXPERT = "layers.0.attn.wq_a", "layers.2.ffn.experts.1.w2"


@cache
def made_once(drafter: bool) -> Checkpoint:
    return golden("fp8", drafter=drafter)


def mixture(*, drafter: bool = False) -> Checkpoint:
    """A checkpoint in the published formats, to be damaged."""
    made = made_once(drafter)
    return Checkpoint(dict(made.config), dict(made.tensors))


def changed(name: str, **values: Any) -> Callable[[Checkpoint], None]:
    """Replaces parts of a tensor."""

    def change(made: Checkpoint) -> None:
        raw = made.tensors[name]
        made.tensors[name] = Raw(**{**raw.__dict__, **values})

    return change


def filled(name: str, byte: int) -> Callable[[Checkpoint], None]:
    """Puts a byte into the first of a tensor."""

    def change(made: Checkpoint) -> None:
        raw = made.tensors[name]
        made.tensors[name] = Raw(raw.dtype, raw.shape, bytes([byte]) + raw.data[1:])

    return change


def floats(name: str, value: float) -> Callable[[Checkpoint], None]:
    """Puts a number at the end of an F32 tensor."""

    def change(made: Checkpoint) -> None:
        raw = made.tensors[name]
        made.tensors[name] = Raw(raw.dtype, raw.shape, raw.data[:-4] + np.float32(value).tobytes())

    return change


def without(name: str) -> Callable[[Checkpoint], None]:
    def change(made: Checkpoint) -> None:
        del made.tensors[name]

    return change


def copied(name: str, other: str) -> Callable[[Checkpoint], None]:
    def change(made: Checkpoint) -> None:
        made.tensors[other] = made.tensors[name]

    return change


def config(**values: Any) -> Callable[[Checkpoint], None]:
    """Sets keys of config.json; None takes one away."""

    def change(made: Checkpoint) -> None:
        made.config |= values
        for key in [key for key, value in made.config.items() if value is None]:
            del made.config[key]

    return change


MADE_WRONG: dict[str, tuple[Callable[[Checkpoint], None], str]] = {
    "missing tensor": (without(QUERY + ".weight"), f"'{QUERY}.weight' is missing"),
    "missing expert": (without(EXPERT + ".weight"), f"'{EXPERT}.weight' is missing"),
    "missing FP8 scale": (without(QUERY + ".scale"), f"'{QUERY}.scale' is missing"),
    "missing FP4 scale": (without(EXPERT + ".scale"), f"'{EXPERT}.scale' is missing"),
    "missing embedding": (without("embed.weight"), "'embed.weight' is missing"),
    "extra tensor": (copied("norm.weight", "layers.0.attn.extra.weight"), "'layers.0.attn.extra.weight'"),
    "extra expert": (copied(EXPERT + ".weight", "layers.2.ffn.experts.16.w2.weight"), "'layers.2.ffn.experts.16.w2"),
    "extra scale": (copied(QUERY + ".scale", "layers.0.ffn.gate.scale"), "'layers.0.ffn.gate.scale'"),
    "integers for a matrix": (changed(QUERY + ".weight", dtype="U8"), f"'{QUERY}.weight' is of dtype U8"),
    "FP8 for a norm": (
        changed("norm.weight", dtype="F8_E4M3", data=bytes(64)), "'norm.weight' is of dtype F8_E4M3"),
    "floats for a token map": (
        changed("layers.0.ffn.gate.tid2eid", dtype="F64"), "'layers.0.ffn.gate.tid2eid' is of dtype F64"),
    "another FP8": (changed(QUERY + ".weight", dtype="F8_E5M2"), f"'{QUERY}.weight' is of dtype F8_E5M2"),
    "unknown dtype": (changed(QUERY + ".weight", dtype="F4"), f"'{QUERY}.weight' has the unknown dtype 'F4'"),
    "wrong dtype of a scale": (changed(QUERY + ".scale", dtype="I8"), f"'{QUERY}.scale' is of dtype I8"),
    "wrong shape": (changed(QUERY + ".weight", shape=(64, 32)), f"'{QUERY}.weight' has shape [64, 32]"),
    "wrong shape of an expert": (changed(EXPERT + ".weight", shape=(32, 32)), f"'{EXPERT}.weight' has shape [32, 32]"),
    "wrong shape of a scale": (
        changed(QUERY + ".scale", shape=(1, 2), data=bytes(2)), f"'{QUERY}.scale' has shape [1, 2]"),
    "shape and bytes disagree": (changed(QUERY + ".weight", shape=(32, 63)), f"'{QUERY}.weight'"),
    "NaN in FP8": (filled(QUERY + ".weight", 0x7F), f"'{QUERY}.weight' holds values that are not finite"),
    "NaN among FP8 scales": (filled(QUERY + ".scale", 255), f"'{QUERY}.scale' holds a scale that is NaN"),
    "NaN among FP4 scales": (filled(EXPERT + ".scale", 255), f"'{EXPERT}.scale' holds a scale that is NaN"),
    "NaN in F32": (floats("hc_head_fn", np.nan), "'hc_head_fn' holds values that are not finite"),
    "infinity in F32": (floats("layers.3.ffn.gate.bias", np.inf), "'layers.3.ffn.gate.bias' holds values"),
    "expert that is not there": (
        filled("layers.1.ffn.gate.tid2eid", 16), "'layers.1.ffn.gate.tid2eid' sends token 0 to experts"),
    "fewer layers than tensors": (config(num_hidden_layers=5), "tensor 'layers.5."),
    "more layers than tensors": (config(num_hidden_layers=7), "tensor 'layers.6."),
    "other width": (config(hidden_size=128), "tensor 'embed.weight' has shape [512, 64], wanted [512, 128]"),
    "more experts": (config(n_routed_experts=17), "tensor 'layers.0.ffn."),
    "other ratios": (config(compress_ratios=[0, 4, 4, 128, 4, 128, 0, 0, 0]), "tensor 'layers.1.attn.compressor"),
    "other hash layers": (config(num_hash_layers=2), "tensor 'layers.2.ffn.gate.bias' is missing"),
    "another model": (config(model_type="deepseek_v3"), "key 'model_type'"),
    "missing key": (config(o_groups=None), "key 'o_groups' is missing"),
    "key of another type": (config(head_dim="256"), "key 'head_dim'"),
    "linear scaling": (config(rope_scaling={"type": "linear", "factor": 4}), "key 'type'"),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE_WRONG)
def test_wrong_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    change, words = MADE_WRONG[name]
    made = mixture()
    change(made)
    fails(made.write(tmp_path / "checkpoint"), capsys, words)


def cut(folder: Path, count: int) -> None:
    data = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(data[:count])


def rewrite(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes the index."""
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def reheader(folder: Path, change: Callable[[str], str]) -> None:
    """Changes the text of a shard's header."""
    data = (folder / SHARD).read_bytes()
    length = int.from_bytes(data[:8], "little")
    text = change(data[8 : 8 + length].decode()).encode()
    (folder / SHARD).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing shard": (lambda folder: (folder / SHARD).unlink(), SHARD),
    "truncated shard": (lambda folder: cut(folder, -1), "the file is truncated"),
    "shard cut in the middle": (lambda folder: cut(folder, 200_000), "inside tensor '"),
    "shard cut in the header": (lambda folder: cut(folder, 100), "its header claims"),
    "empty shard": (lambda folder: cut(folder, 0), "no safetensors file"),
    "shard with a tail": (
        lambda folder: (folder / SHARD).write_bytes((folder / SHARD).read_bytes() + b"x"), "follow the last tensor"),
    "header that is no JSON": (lambda folder: reheader(folder, lambda text: text[:-20]), "the header is not JSON"),
    "header with a gap": (
        lambda folder: reheader(folder, lambda text: text.replace("[0, ", "[8, ", 1)), "tensor 'embed.weight'"),
    "name that occurs twice": (
        lambda folder: reheader(folder, lambda text: text.replace('"head.weight"', '"embed.weight"')),
        "'embed.weight' occurs more than once"),
    "index naming a missing file": (
        lambda folder: rewrite(folder, lambda where: where.update({QUERY + ".weight": "gone.safetensors"})),
        f"gone.safetensors: missing; it holds tensor '{QUERY}.weight'"),
    "index naming the wrong file": (
        lambda folder: rewrite(folder, lambda where: where.update({QUERY + ".weight": SHARD.replace("1-", "2-", 1)})),
        f"tensor '{QUERY}.weight' is missing, though the index"),
    "index without a tensor": (
        lambda folder: rewrite(folder, lambda where: where.pop(QUERY + ".weight")), f"'{QUERY}.weight' is missing"),
    "index that leaves the folder": (
        lambda folder: rewrite(folder, lambda where: where.update({"norm.weight": "../x.safetensors"})), "weight_map"),
    "index that is no JSON": (lambda folder: (folder / INDEX).write_text("{"), INDEX),
    "no config": (lambda folder: (folder / "config.json").unlink(), "config.json: missing"),
    "config that is no JSON": (lambda folder: (folder / "config.json").write_text("]"), "config.json: not JSON"),
    "tokenizer of another model": (
        lambda folder: (folder / "tokenizer.json").write_text('{"pre_tokenizer": null, "model": {}}'), "pre-tokenizer"),
    "tokenizer too large": (
        lambda folder: (folder / "tokenizer.json").write_text(
            (folder / "tokenizer.json").read_text().replace('"id": 511', '"id": 512')), "has id 512"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    damage, words = DAMAGED[name]
    folder = mixture().write(tmp_path / "checkpoint")
    write_tokenizer(folder)
    damage(folder)
    fails(folder, capsys, words)


DRAFTER_WRONG: dict[str, tuple[Callable[[Checkpoint], None], str]] = {
    "missing tensor": (without("mtp.1.attn.wkv.weight"), "'mtp.1.attn.wkv.weight' is missing"),
    "extra tensor": (copied("mtp.0.main_norm.weight", "mtp.1.main_norm.weight"), "'mtp.1.main_norm.weight'"),
    "no keys": (config(dspark_block_size=None), "key 'dspark_block_size' is missing"),
    "other rank": (config(dspark_markov_rank=16), "tensor 'mtp.2.markov_head.markov_w1.weight' has shape"),
    "more taps": (config(dspark_target_layer_ids=[2, 3, 4, 5]), "tensor 'mtp.0.main_proj.weight' has shape"),
    "taps past the target": (config(dspark_target_layer_ids=[4, 5, 6]), "key 'dspark_target_layer_ids'"),
    "noise outside the vocabulary": (config(dspark_noise_token_id=512), "key 'dspark_noise_token_id'"),
    "compressing stages": (config(compress_ratios=[0, 0, 4, 128, 4, 128, 0, 0, 4]), "key 'compress_ratios'"),
}


@pytest.mark.parametrize("name", DRAFTER_WRONG)
def test_wrong_drafter(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    change, words = DRAFTER_WRONG[name]
    made = mixture(drafter=True)
    change(made)
    fails(made.write(tmp_path / "checkpoint"), capsys, words, "--dspark-only")


def test_no_drafter_and_other_drafters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = mixture()
    fails(made.write(tmp_path / "none"), capsys, "has no drafter", "--dspark-only")
    made.tensors["mtp.0.e_proj.weight"] = made.tensors["head.weight"]
    fails(made.write(tmp_path / "vanilla"), capsys, "holds a vanilla MTP block", "--dspark-only")
    drafter = mixture(drafter=True)
    for name in [name for name in drafter.tensors if name.startswith("mtp.1.")]:
        del drafter.tensors[name]
    fails(drafter.write(tmp_path / "gap"), capsys, "has drafter stages [0, 2]", "--dspark-only")


def test_a_drafter_that_fails_takes_the_target_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = mixture(drafter=True)
    filled("mtp.2.attn.wq_a.weight", 0x7F)(made)
    folder = made.write(tmp_path / "checkpoint")
    fails(folder, capsys, "mtp.2.attn.wq_a.weight", "--drafter", tmp_path / "out" / "drafter.gguf")


def fails(folder: Path, capsys: pytest.CaptureFixture[str], words: str, *flags: object) -> None:
    """Exit code 3, one line with the words, and an empty output folder."""
    out = folder.parent / "out"
    out.mkdir(exist_ok=True)
    assert main([str(folder), str(out / "model.gguf"), "--preset", "q8", "-q", *map(str, flags)]) == 3
    message = capsys.readouterr().err
    assert message.startswith("deepseek4-quantize: error: ") and message.count("\n") == 1
    assert words in message
    assert list(out.iterdir()) == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return golden("bf16").write(tmp_path / "checkpoint")


def interrupt_after(monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Ctrl-C after so many tensors; returns the list of what is written from now on."""
    written: list[str] = []
    plain = writer.OpenOutput.write

    def write(self: writer.OpenOutput, number: int, slab: Any) -> None:
        if len(written) == count:
            raise KeyboardInterrupt
        written.append(self.file.tensors[number].name)
        plain(self, number, slab)

    monkeypatch.setattr(writer.OpenOutput, "write", write)
    return written


def test_interrupted_run_goes_on(tmp_path: Path, source: Path, monkeypatch, capsys) -> None:
    out = tmp_path / "model.gguf"
    interrupt_after(monkeypatch, 100)
    assert main([str(source), str(out), "--preset", "f32", "-t", "1"]) == 130
    assert not out.exists() and (tmp_path / "model.gguf.partial").exists()
    monkeypatch.undo()
    written = interrupt_after(monkeypatch, -1)
    assert main([str(source), str(out), "--preset", "f32", "-t", "1"]) == 0
    there = 178 - len(set(written))
    assert there > 20 and f"{there} of 178 tensors are there" in capsys.readouterr().err
    assert_same(out, TARGET)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "model.gguf"]


def test_what_was_made_from_something_else_is_not_used(tmp_path: Path, source: Path, monkeypatch) -> None:
    out = tmp_path / "model.gguf"
    interrupt_after(monkeypatch, 100)
    assert main([str(source), str(out), "--preset", "q8", "-t", "1", "-q"]) == 130
    monkeypatch.undo()
    (tmp_path / "model.gguf.partial.journal").write_text("torn")
    written = interrupt_after(monkeypatch, -1)
    convert(source, out, "--preset", "f32")
    assert len(set(written)) == 178
    assert_same(out, TARGET)


def test_full_disk_is_noticed_before_starting(tmp_path: Path, source: Path, monkeypatch, capsys) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert main([str(source), str(tmp_path / "model.gguf"), "-q"]) == 1
    assert "the output needs" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


def test_two_runs_do_not_write_one_file(tmp_path: Path, source: Path, capsys) -> None:
    with (tmp_path / "model.gguf.partial").open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert main([str(source), str(tmp_path / "model.gguf"), "-q"]) == 2
        assert "is being written by another run" in capsys.readouterr().err
        assert (tmp_path / "model.gguf.partial").exists()
    convert(source, tmp_path / "model.gguf", "--preset", "f32")
    assert_same(tmp_path / "model.gguf", TARGET)


def test_existing_files_are_spared(tmp_path: Path, source: Path, capsys) -> None:
    out = tmp_path / "model.gguf"
    out.write_text("mine")
    assert main([str(source), str(out), "-q"]) == 2
    assert "--overwrite" in capsys.readouterr().err and out.read_text() == "mine"
    assert main([str(source), str(out), "-q", "--overwrite", "--preset", "f32"]) == 0
    assert main([str(out), str(out), "-q", "--overwrite"]) == 2
    assert "is the source itself" in capsys.readouterr().err
    assert_same(out, TARGET)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--contract", "ds4"), "--contract"), (("--dspark-only", "--drafter", "x.gguf"), "--drafter"),
        (("--type", "nonsense"), "PATTERN=TYPE"), (("--type", "a=Q9_0"), "Q9_0"),
        (("--type", "nothing*=Q8_0"), "fits no"),
        (("--type", "*norm*=Q8_0"), "always F32"), (("--type", "*router*=F16"), "fits no"),
        (("--type", "*gate_inp*=Q8_0"), "below 16 bits"), (("--type", "*exps=Q4_K"), "no multiple of 256"),
        (("--split", "12X"), "--split"), (("--split", "1K"), "too small for"), (("--target", "x"), "--check"),
    ],
)  # fmt: skip
def test_wrong_usage(tmp_path: Path, source: Path, capsys, flags: tuple[str, ...], words: str) -> None:
    assert main([str(source), str(tmp_path / "out.gguf"), "-q", *flags]) == 2
    assert words in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
