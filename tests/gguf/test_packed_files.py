"""Packed files: the same bits as from the files they were packed from, mapped as they are, and refused when damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llama
import numpy as np
import pytest
from checkpoints import golden, write_tokenizer
from converting import assert_same, convert, metadata
from generating import GREEDY, PROMPT, ids_of
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType as Kind
from gguf_tools import DRAFTER, TARGET
from synthetic import write_target

from ds4py import Engine, _native
from ds4py.converter import packing
from ds4py.converter.cli import main
from ds4py.converter.values import Metadata, array, text, u32
from ds4py.errors import FormatError, RequestError

TOKENS = PROMPT[:150]
QUERY = "blk.0.attn_q_a.weight"


def pack(source: Path, folder: Path, *flags: object) -> Path:
    return convert(source, folder / f"{source.stem}-packed.gguf", "--pack", *flags)


def logits(path: Path, **options: Any) -> np.ndarray:
    with (
        Engine(path, device="cpu", threads=1, **options) as engine,
        engine.session(context=256, kv_dtype="f32") as session,
    ):
        assert engine.repacked
        return session.evaluate(TOKENS)


@pytest.mark.parametrize("preset", ["f32", "f16", "q8", "mxfp4"])
def test_golden_target_computes_the_same_bits(tmp_path: Path, preset: str) -> None:
    path = convert(TARGET, tmp_path / "target.gguf", "--preset", preset)
    np.testing.assert_array_equal(logits(pack(path, tmp_path)), logits(path))


@pytest.mark.parametrize(
    "kind",
    [Type.Q4_0, Type.Q2_K, Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.IQ2_XXS, Type.IQ3_XXS, Type.BF16],
    ids=lambda kind: kind.name,
)
def test_every_type_computes_the_same_bits(tmp_path: Path, kind: Type) -> None:
    path = write_target(tmp_path / "model.gguf", kind, kind)
    np.testing.assert_array_equal(logits(pack(path, tmp_path)), logits(path))


@pytest.mark.parametrize("preset", ["q2", "q4"])
def test_presets_pack_as_their_files(tmp_path: Path, preset: str) -> None:
    source = write_target(tmp_path / "model.gguf", Type.F32, Type.F32)
    packed = pack(source, tmp_path, "--preset", preset)
    np.testing.assert_array_equal(logits(packed), logits(convert(source, tmp_path / "plain.gguf", "--preset", preset)))


def test_types_without_kernels_stay_rows(tmp_path: Path) -> None:
    path = write_target(tmp_path / "model.gguf", Type.Q3_K, Type.Q8_0)
    packed = pack(path, tmp_path)
    found = {tensor.name: tensor.packed for tensor in _native.GgufFile.open(packed).tensors()}
    assert found[QUERY] == 1 and found["blk.0.attn_output_a.weight"] == 2
    assert found["blk.1.ffn_up_exps.weight"] == found["token_embd.weight"] == 0
    np.testing.assert_array_equal(logits(packed), logits(path))


@pytest.mark.parametrize(("target", "drafter"), [(True, True), (True, False), (False, True)])
def test_speculation_is_the_same(tmp_path: Path, target: bool, drafter: bool) -> None:
    def generated(target: Path, drafter: Path) -> tuple[list[int], list[int]]:
        with Engine(target, drafter=drafter, device="cpu", threads=1) as engine, engine.session(context=512) as session:
            pieces = list(session.generate(PROMPT, max_tokens=40, sampling=GREEDY, draft="dspark", width=4))
            return ids_of(pieces), [cycle.accepted for cycle in session.stats.speculation.cycles]

    model, draft = (pack(TARGET, tmp_path) if target else TARGET), (pack(DRAFTER, tmp_path) if drafter else DRAFTER)
    assert generated(model, draft) == generated(TARGET, DRAFTER)


@pytest.mark.parametrize(("preset", "contract"), [("f16", "ds4"), ("q8", "dflash"), ("mxfp4", "lucebox")])
def test_checkpoints_are_packed_as_the_files_made_of_them(tmp_path: Path, preset: str, contract: str) -> None:
    checkpoint = golden("fp8", drafter=True).write(tmp_path / "checkpoint")
    write_tokenizer(checkpoint)
    flags = ("--preset", preset, "--contract", contract, "--drafter")
    plain = convert(checkpoint, tmp_path / "target.gguf", *flags, tmp_path / "drafter.gguf")
    packed = convert(checkpoint, tmp_path / "at-once.gguf", "--pack", *flags, tmp_path / "drafter-at-once.gguf")
    for later, at_once in (
        (pack(plain, tmp_path), packed),
        (pack(tmp_path / "drafter.gguf", tmp_path), tmp_path / "drafter-at-once.gguf"),
    ):
        assert_same(later, at_once)
        assert metadata(later) == metadata(at_once)
        assert main(["--check", str(later), "--json"]) == 0


@pytest.mark.parametrize("slab", [1, 5000])
def test_slabs_and_threads_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slab: int) -> None:
    source = write_target(tmp_path / "model.gguf", Type.Q4_K)
    wanted = pack(source, tmp_path, "--threads", 1).read_bytes()
    monkeypatch.setattr(packing, "SLAB", slab)
    assert pack(source, tmp_path, "--threads", 3, "--overwrite").read_bytes() == wanted


def test_shards(tmp_path: Path) -> None:
    convert(TARGET, tmp_path / "model.gguf", "--pack", "--split", 1_500_000)
    shards = sorted(tmp_path.glob("model-*-of-*.gguf"))
    assert len(shards) > 3
    np.testing.assert_array_equal(logits(shards[1]), logits(TARGET))


def test_weights_are_used_from_the_mapping(tmp_path: Path) -> None:
    path = pack(TARGET, tmp_path)
    with Engine(path, device="cpu", threads=1) as engine, engine.session(context=64) as session:
        before = session.evaluate(TOKENS[:8])
        session.rewind(0)
        data = np.memmap(path, np.uint8, "r+")
        data[len(data) // 2 :] = 0
        assert not np.array_equal(session.evaluate(TOKENS[:8]), before)


def test_it_says_what_it_stands_for(tmp_path: Path) -> None:
    path = pack(TARGET, tmp_path)
    assert metadata(path)["general.architecture"] == "deepseek4-packed"
    found, wanted = _native.GgufFile.open(path), _native.GgufFile.open(TARGET)
    assert found.metadata()["general.architecture"] == "deepseek4"
    assert [(t.name, t.type, t.shape) for t in found.tensors()] == [(t.name, t.type, t.shape) for t in wanted.tensors()]
    assert max(tensor.packed for tensor in found.tensors()) == found.metadata()["deepseek4.expert_count"]


def test_progress_only_rises(tmp_path: Path) -> None:
    for path in (TARGET, pack(TARGET, tmp_path)):
        seen: list[float] = []
        Engine(path, device="cpu", threads=1, progress=seen.append).close()
        assert seen == sorted(seen) and seen[-1] == 1


def test_without_the_kernels_it_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, drafter = pack(TARGET, tmp_path), pack(DRAFTER, tmp_path)
    with pytest.raises(RequestError, match="the file that it was packed from"):
        Engine(target, device="cpu", repack=False)
    with pytest.raises(RequestError, match=f"{drafter}.*the file that it was packed from"):
        Engine(TARGET, drafter=drafter, device="cpu", repack=False)
    monkeypatch.setenv("DS4_OPS", "generic")
    with pytest.raises(RequestError, match="DS4_OPS=generic"):
        Engine(target, device="cpu")


def test_it_is_no_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = pack(TARGET, tmp_path)
    for command in (
        [str(packed), str(tmp_path / "out.gguf"), "--preset", "q8"],
        [str(packed), str(tmp_path / "out.gguf"), "--pack"],
        ["--compare", str(TARGET), str(packed)],
    ):
        assert main(command) == 3
        assert "give the file it was packed from" in capsys.readouterr().err


def test_check_describes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, drafter = pack(TARGET, tmp_path), pack(DRAFTER, tmp_path)
    assert main(["--check", str(drafter), "--target", str(target)]) == 0
    said = capsys.readouterr().out
    assert "sound drafter" in said and "packed for the CPU" in said and "I8" not in said


def without(key: str) -> Callable[[Metadata], Metadata]:
    return lambda keys: {name: value for name, value in keys.items() if name != key}


def changed(key: str, place: int, value: Any) -> Callable[[Metadata], Metadata]:
    """One element of an array is another."""

    def change(keys: Metadata) -> Metadata:
        values = list(keys[key].value)
        values[place] = value
        return {**keys, key: array(values, keys[key].element)}

    return change


NAMES, TYPES, SHAPES = "ds4.packed.tensors", "ds4.packed.types", "ds4.packed.shapes"
AGAIN = "pack the original again with deepseek4-quantize --pack"
DAMAGE: dict[str, tuple[Callable[[Metadata], Metadata], str]] = {
    "another layout": (lambda k: {**k, "ds4.packed.layout": u32(2)}, f"is 2, and this version reads layout 1; {AGAIN}"),
    "layout is text": (lambda k: {**k, "ds4.packed.layout": text("1")}, "is the string '1', and this version reads"),
    "no layout": (without("ds4.packed.layout"), "'ds4.packed.layout' is missing"),
    "the plain architecture": (lambda k: {**k, "general.architecture": text("deepseek4")}, "does not end in '-packed'"),
    "no names": (without(NAMES), f"'{NAMES}' is missing, wanted an array of names"),
    "no types": (without(TYPES), f"'{TYPES}' is missing, wanted an array of integers"),
    "no shapes": (without(SHAPES), f"'{SHAPES}' is missing"),
    "names are numbers": (lambda k: {**k, NAMES: array([1, 2], Kind.UINT32)}, "is an array of 2 integers, wanted"),
    "a type too few": (lambda k: {**k, TYPES: array(k[TYPES].value[1:], Kind.UINT32)}, "wanted one and three for each"),
    "an unknown name": (changed(NAMES, 0, "nothing.weight"), "names 'nothing.weight', which is not in the file"),
    "a name twice": (changed(NAMES, 1, "blk.0.hc_attn_fn.weight"), "'blk.0.hc_attn_fn.weight' stands twice"),
    "a tensor of rows": (changed(NAMES, 0, "output_norm.weight"), "'output_norm.weight' is of type F32 and shape"),
    "another type": (changed(TYPES, 2, 1), f"'{QUERY}' is packed, and its bytes are not those of its type 1"),
    "no such type": (changed(TYPES, 2, 4), f"'{QUERY}' is packed, and its bytes are not"),
    "a type beyond all": (changed(TYPES, 2, 2**32 - 1), f"'{QUERY}' is packed, and its bytes are not"),
    "a type without kernels": (changed(TYPES, 2, 11), f"'{QUERY}' is packed, and its bytes are not"),
    "no columns": (changed(SHAPES, 6, 0), f"'{QUERY}' is packed, and its bytes are not"),
    "too many rows": (changed(SHAPES, 7, 2**40), f"'{QUERY}' is packed, and its bytes are not"),
    "sizes that wrap": (changed(SHAPES, 6, 2**62), f"'{QUERY}' is packed, and its bytes are not"),
    "a tile too few": (changed(SHAPES, 7, 16), f"'{QUERY}' is packed, and its bytes are not"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_keys_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    change, message = DAMAGE[damage]
    made = packing.packed_keys
    monkeypatch.setattr(packing, "packed_keys", lambda *parts: change({**made(*parts)}))
    path = pack(TARGET, tmp_path)
    with pytest.raises(FormatError, match=message):
        _native.GgufFile.open(path)


OTHERWISE = {
    "an embedding": ("token_embd.weight", 0, 1, "'token_embd.weight' is packed, which only rows can be used of"),
    "groups as one": ("blk.0.attn_output_a.weight", 0, 1, r"packed, as 1 matrices, wanted \d"),
    "not widened": ("blk.0.hc_attn_fn.weight", 1, 1, "packed, as F16, wanted F32"),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_packed_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    name, kind, count, message = OTHERWISE[what]
    listed = packing.packable_tensors

    def wrong(output: Any) -> list[Any]:
        shape = next(tensor.shape for tensor in output.tensors if tensor.name == name)
        rows = -(-shape[0] // count // 16) * 16
        bad = SimpleNamespace(name=name, type=kind, count=count, bytes=rows * shape[1] * (2 if kind else 4))
        return [*(each for each in listed(output) if each.name != name), bad]

    monkeypatch.setattr(packing, "packable_tensors", wrong)
    path = pack(TARGET, tmp_path, "--type", "blk.0.hc_attn_fn=F16")
    with pytest.raises(FormatError, match=message):
        _native.Model.load(str(path), device="cpu")
    assert main(["--check", str(path)]) == 3


def test_a_file_cut_short(tmp_path: Path) -> None:
    path = pack(TARGET, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match=r"tensor .*cut short"):
        _native.GgufFile.open(path)


def test_any_bytes_in_the_keys(tmp_path: Path) -> None:
    """It is refused, or it runs: whatever passes the checks cannot make a kernel read outside of the file."""
    path = pack(TARGET, tmp_path)
    data = path.read_bytes()
    begin, end = data.index(b"ds4.packed.layout"), data.index(b"ds4.packed.shapes") + 4000
    rng, refused = np.random.default_rng(7), 0
    for place in rng.integers(begin, end, 80):
        damaged = bytearray(data)
        damaged[place] = rng.integers(0, 256)
        other = tmp_path / f"{place}.gguf"
        other.write_bytes(damaged)
        try:
            logits(other)
        except FormatError:
            refused += 1
        other.unlink()
    assert refused > 40


def test_rows_that_are_none(tmp_path: Path) -> None:
    for rows, kind, packed, columns in (
        (np.zeros(3, np.uint8), 0, 0, 32), (np.zeros(128, np.uint8), -1, 0, 32), (np.zeros(128, np.uint8), 0, 99, 32),
        (np.zeros(128, np.uint8), 0, 8, 32), (np.zeros(128, np.uint8), 0, 0, 0), (np.zeros(34, np.uint8), 8, 8, 16),
    ):  # fmt: skip
        with pytest.raises(RequestError, match="are no rows of"):
            _native.pack_rows(rows, kind, packed, columns)


@llama.installed
@pytest.mark.parametrize("source", [TARGET, DRAFTER], ids=["target", "drafter"])
def test_llama_cpp_refuses_it(tmp_path: Path, source: Path) -> None:
    load = """
import sys
import llama_cpp as llama

llama.llama_backend_init()
settings = llama.llama_model_default_params()
settings.n_gpu_layers = 0
print(bool(llama.llama_model_load_from_file(sys.argv[1].encode(), settings)))
"""
    assert llama.run("-c", load, source).split() == ["True"]
    assert llama.run("-c", load, pack(source, tmp_path)).split() == ["False"]
