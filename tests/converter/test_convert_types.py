"""Types: what presets cost by role, overrides, importance matrices, and that threads and slabs change nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path

import gguf
import numpy as np
import pytest
from converting import assert_same, convert, metadata, tensors
from device import open_engine
from gguf import GGMLQuantizationType as Type
from gguf_tools import DRAFTER, TARGET, edited
from synthetic import write_target

from ds4py.converter.cli import main
from ds4py.converter.compare import compare
from ds4py.converter.imatrix import read_imatrix
from ds4py.converter.roles import Role
from ds4py.errors import FormatError

Q8, F16, BF16, F32 = 0.0062, 3e-4, 2.5e-3, 0.0
BOUNDS = {
    "q2": {Role.GATE: 0.42, Role.UP: 0.42, Role.DOWN: 0.33, Role.ATTENTION: Q8, Role.SMALL: BF16, Role.HC: F32},
    "q4": {Role.GATE: 0.085, Role.UP: 0.085, Role.DOWN: 0.085, Role.SHARED: Q8, Role.EMBEDDING: Q8},
    "mxfp4": {Role.GATE: 0.13, Role.UP: 0.13, Role.DOWN: 0.13, Role.OUTPUT: BF16, Role.EMBEDDING: BF16},
    "q8": {Role.GATE: Q8, Role.DOWN: Q8, Role.ATTENTION: Q8, Role.OUTPUT: Q8},
    "f16": {Role.GATE: F16, Role.ATTENTION: F16, Role.SMALL: F16, Role.OUTPUT: F16},
    "f32": dict.fromkeys((Role.GATE, Role.UP, Role.DOWN, Role.ATTENTION, Role.SMALL, Role.OUTPUT), F32),
}
"""Relative errors on random normal weights; vectors, position biases and hyper-connections are exact in all presets."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    """A random F32 target whose rows are long enough for K-quants."""
    return write_target(tmp_path_factory.mktemp("wide") / "wide.gguf", Type.F32, Type.F32)


@pytest.fixture(scope="module")
def quantised(tmp_path_factory, wide: Path) -> Callable[[str], Path]:
    """The wide target in a preset."""
    folder = tmp_path_factory.mktemp("quantised")
    return cache(lambda preset: convert(wide, folder / f"{preset}.gguf", "--preset", preset))


@pytest.mark.parametrize("preset", BOUNDS)
def test_error_by_role(wide: Path, quantised, preset: str) -> None:
    found = compare(wide, quantised(preset), 2, lambda *_: None)
    assert not found.unpaired
    errors = {role: error.relative for role, error in found.roles.items()}
    print(preset, {role.value: f"{error:.2e}" for role, error in errors.items()})
    for role, bound in (BOUNDS[preset] | dict.fromkeys((Role.VECTOR, Role.APE, Role.HC, Role.TOKEN_MAP), F32)).items():
        assert errors[role] <= bound, role
        assert bound == 0 or errors[role] > bound / 4, f"{role}: the bound is loose"


@pytest.mark.parametrize("preset", ["q2", "q4"])
def test_quantised_file_runs(quantised, preset: str) -> None:
    with open_engine(quantised(preset), threads=1) as engine, engine.session(context=64) as session:
        assert np.isfinite(session.evaluate([3, 4, 5, 6] * 4)).all()


@pytest.mark.parametrize("kind", ["Q4_0", "Q5_1", "Q3_K", "Q6_K", "IQ4_XS", "IQ3_XXS", "TQ2_0", "MXFP4", "BF16"])
def test_any_type_can_be_asked_for(tmp_path: Path, wide: Path, kind: str) -> None:
    path = convert(wide, tmp_path / "out.gguf", "--preset", "f32", "--type", f"blk.1.ffn_down_shexp={kind}")
    found = tensors(path)
    assert found["blk.1.ffn_down_shexp.weight"].tensor_type.name == kind
    assert found["blk.2.ffn_down_shexp.weight"].tensor_type.name == "F32"


def test_the_last_override_counts(tmp_path: Path, wide: Path) -> None:
    flags = ("--type", "blk.*.ffn_*_exps=Q4_K", "--type", "blk.[23].ffn_down_exps.weight=q6_k")
    found = tensors(convert(wide, tmp_path / "out.gguf", "--preset", "q8", *flags))
    kinds = {name: found[name].tensor_type.name for name in found if "_exps" in name}
    assert {name for name, kind in kinds.items() if kind == "Q6_K"} == {f"blk.{n}.ffn_down_exps.weight" for n in (2, 3)}
    assert set(kinds.values()) == {"Q6_K", "Q4_K"}
    assert found["blk.0.attn_q_a.weight"].tensor_type.name == "Q8_0"


def test_bytes_are_those_of_the_format(wide: Path, quantised) -> None:
    """Q8_0 against the Python implementation; what spans many slabs is what it would be at once."""
    found, plain = tensors(quantised("q8")), tensors(wide)
    for name in ("token_embd.weight", "blk.2.ffn_up_exps.weight", "blk.0.attn_output_a.weight"):
        assert np.array_equal(found[name].data, gguf.quants.quantize(np.array(plain[name].data), Type.Q8_0))


def test_threads_change_nothing(tmp_path: Path, wide: Path) -> None:
    flags = ("--preset", "q8", "--type", "blk.1.ffn_*_exps=Q4_K")
    assert_same(*(convert(wide, tmp_path / f"{n}.gguf", *flags, "-t", n) for n in (1, 3)))


def test_requantising_keeps_names_and_metadata(tmp_path: Path) -> None:
    for source in (TARGET, DRAFTER):
        path = convert(source, tmp_path / source.name, "--preset", "q8")
        before, after = metadata(source), metadata(path)
        changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert changed == {"general.file_type", "general.alignment", "GGUF.kv_count"}
        assert tensors(source).keys() == tensors(path).keys()
        assert main(["--check", str(path)]) == 0


def test_short_rows_get_a_wider_type(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(TARGET), str(tmp_path / "out.gguf"), "--preset", "q4"]) == 0
    assert "blk.0.ffn_gate_exps.weight: rows of 64 are no multiple of 256, Q8_0 instead" in capsys.readouterr().err


def test_values_beyond_f16_are_refused(tmp_path: Path, wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    big = np.full((128, 256), 1e5, np.float32)
    source = edited(wide, tmp_path / "big.gguf", tensors={"blk.0.attn_kv.weight": big})
    assert main([str(source), str(tmp_path / "out.gguf"), "--preset", "f16", "-q"]) == 3
    assert "'blk.0.attn_kv.weight' has values up to 1e+05, which F16 cannot hold" in capsys.readouterr().err
    assert not (tmp_path / "out.gguf").exists()


def importance(columns: int, matrices: int) -> np.ndarray:
    """Very uneven: the first columns matter most, and which those are depends on the matrix."""
    base = np.where(np.arange(columns) < columns // 8, 100.0, 0.01)
    return np.stack([np.roll(base, 32 * number) for number in range(matrices)]).astype(np.float32)


NAME = "blk.1.ffn_down_exps.weight"


def write_dat(path: Path, entries: dict[str, np.ndarray], calls: int = 4) -> Path:
    data = struct.pack("<i", len(entries))
    for name, values in entries.items():
        data += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, values.size)
        data += (values * calls).astype("<f4").tobytes()
    path.write_bytes(data + struct.pack("<i", 17) + struct.pack("<i", 4) + b"text")
    return path


def write_gguf(path: Path, entries: dict[str, np.ndarray]) -> Path:
    writer = gguf.GGUFWriter(path, "")
    writer.add_string("general.type", "imatrix")
    writer.add_array("imatrix.datasets", ["text"])
    writer.add_uint32("imatrix.chunk_count", 17)
    for name, values in entries.items():
        counts = np.arange(1, len(values) + 1, dtype=np.float32)[:, None]
        writer.add_tensor(name + ".in_sum2", values * counts)
        writer.add_tensor(name + ".counts", counts)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_importance_lowers_the_error_where_it_matters(tmp_path: Path, wide: Path) -> None:
    weights = importance(256, 8)
    dat = write_dat(tmp_path / "imatrix.dat", {NAME: weights})
    flags = ("--preset", "f32", "--type", "blk.1.ffn_down_exps=Q2_K")
    plain = convert(wide, tmp_path / "plain.gguf", *flags)
    weighed = convert(wide, tmp_path / "weighed.gguf", *flags, "--imatrix", dat)
    exact = np.array(tensors(wide)[NAME].data)
    errors = []
    for path in (plain, weighed):
        found = gguf.quants.dequantize(np.array(tensors(path)[NAME].data), Type.Q2_K)
        errors.append(((found - exact) ** 2 * weights[:, None]).sum(axis=(1, 2)))
    assert (errors[1] < 0.85 * errors[0]).all()  # every expert by its own columns
    assert metadata(weighed)["quantize.imatrix.file"] == "imatrix.dat"
    assert metadata(weighed)["quantize.imatrix.chunks_count"] == 17


def test_both_formats_of_importance_say_the_same(tmp_path: Path) -> None:
    entries = {NAME: importance(256, 8), "blk.0.attn_kv.weight": importance(256, 1)}
    dat = read_imatrix(write_dat(tmp_path / "imatrix.dat", entries))
    new = read_imatrix(write_gguf(tmp_path / "imatrix.gguf", entries))
    assert dat.values.keys() == new.values.keys() == entries.keys()
    for name, values in entries.items():
        np.testing.assert_allclose(dat.values[name], values.ravel(), rtol=1e-6)
        np.testing.assert_allclose(new.values[name], values.ravel(), rtol=1e-6)
    assert (dat.chunks, dat.dataset) == (new.chunks, new.dataset) == (17, "text")


def test_an_expert_that_was_never_used_counts_plainly(tmp_path: Path) -> None:
    path = tmp_path / "imatrix.gguf"
    writer = gguf.GGUFWriter(path, "")
    writer.add_tensor("a.in_sum2", np.array([[4, 8], [0, 0]], np.float32))
    writer.add_tensor("a.counts", np.array([[2], [0]], np.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()
    assert read_imatrix(path).values["a"].tolist() == [2, 4, 1, 1]


def test_wrong_importance(tmp_path: Path, wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, columns, words in ((NAME, 128, "made for another model"), (NAME, 256, None)):
        path = write_dat(tmp_path / "imatrix.dat", {name: importance(columns, 8)})
        code = main([str(wide), str(tmp_path / "out.gguf"), "--preset", "q8", "--imatrix", str(path), "-q"])
        assert code == (3 if words else 0)
        assert words is None or words in capsys.readouterr().err
    data = path.read_bytes()
    for cut in (0, 3, 20, 60, 5000):
        path.write_bytes(data[:cut])
        with pytest.raises(FormatError, match="imatrix file"):
            read_imatrix(path)
    with pytest.raises(FormatError, match="negative or not finite"):
        read_imatrix(write_dat(path, {NAME: -importance(256, 8)}))
