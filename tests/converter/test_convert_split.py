"""Outputs in shards: sizes, what shards say of themselves, and that they are one model."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from checkpoints import golden, write_tokenizer
from converting import convert, tensors
from device import open_engine
from gguf_tools import TARGET

from ds4py.converter.cli import main

LIMIT = 1_500_000


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("model-*-of-*.gguf"))


def split(tmp_path: Path) -> list[Path]:
    source = golden("bf16").write(tmp_path / "checkpoint")
    write_tokenizer(source)
    convert(source, tmp_path / "model.gguf", "--preset", "f32", "--split", LIMIT)
    return shards(tmp_path)


@pytest.mark.fast
def test_shards_hold_the_model_and_keep_the_limit(tmp_path: Path) -> None:
    paths = split(tmp_path)
    assert [path.name for path in paths] == [f"model-{n + 1:05}-of-{len(paths):05}.gguf" for n in range(len(paths))]
    assert len(paths) > 3 and all(path.stat().st_size <= LIMIT for path in paths)
    found = {name: tensor for path in paths for name, tensor in tensors(path).items()}
    wanted = tensors(TARGET)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name].data, wanted[name].data) for name in wanted)
    assert not (tmp_path / "model.gguf").exists()


def test_keys_are_those_that_llama_cpp_reads(tmp_path: Path) -> None:
    paths = split(tmp_path)
    for number, path in enumerate(paths):
        fields = gguf.GGUFReader(path).fields
        for key, value, kind in (
            ("no", number, "UINT16"),
            ("count", len(paths), "UINT16"),
            ("tensors.count", 178, "INT32"),
        ):
            assert fields[f"split.{key}"].contents() == value
            assert fields[f"split.{key}"].types[0].name == kind
        assert ("deepseek4.block_count" in fields) == (number == 0)


def test_shards_load_whichever_is_named(tmp_path: Path) -> None:
    paths = split(tmp_path)
    tokens = list(range(3, 60))
    with open_engine(TARGET, threads=1) as engine, engine.session(context=64) as session:
        wanted = session.evaluate(tokens)
    with open_engine(paths[2], threads=1) as engine, engine.session(context=64) as session:
        assert np.array_equal(session.evaluate(tokens), wanted)


def test_shards_are_a_source_too(tmp_path: Path) -> None:
    paths = split(tmp_path)
    whole = convert(paths[1], tmp_path / "whole.gguf", "--preset", "f32")
    assert not any(key.startswith("split.") for key in gguf.GGUFReader(whole).fields)
    assert main(["--compare", str(TARGET), str(whole), "-q"]) == 0


def test_what_fits_is_not_split(tmp_path: Path) -> None:
    convert(TARGET, tmp_path / "model.gguf", "--preset", "f32", "--split", "48G")
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]
