"""Sources with any value in any place, and with any bytes in a header: converted or refused, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkpoints import golden, write_tokenizer

from ds4py.converter import convert
from ds4py.converter.presets import PRESETS, TypeSelector
from ds4py.converter.source.checkpoint import INDEX, Checkpoint
from ds4py.converter.source.safetensors import read_header
from ds4py.converter.source.tokenizer import tokenizer
from ds4py.errors import FormatError

VALUES = (None, 0, -1, "x", [], [1], {}, True, 1e308, float("nan"), 2**70)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = golden("fp8", drafter=True).write(tmp_path_factory.mktemp("fuzz"))
    write_tokenizer(made)
    return made


def refused(work: Callable[[], Any]) -> bool:
    """Whether it raises FormatError; any other exception fails the test."""
    try:
        work()
    except FormatError:
        return True
    return False


def plan(folder: Path) -> None:
    checkpoint, options = Checkpoint(folder), convert.ConversionOptions(TypeSelector(PRESETS["q8"]))
    convert.target(checkpoint, Path("target.gguf"), options)
    convert.drafter(checkpoint, Path("drafter.gguf"), options)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Some places in a JSON value: up to six keys of an object, two entries of a list."""
    keys = list(value)[:6] if isinstance(value, dict) else range(min(len(value), 2)) if isinstance(value, list) else ()
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


def replaced(original: str, path: tuple[Any, ...], value: Any) -> str:
    found = json.loads(original)
    inner = found
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return json.dumps(found)


def test_values_of_the_configuration(folder: Path) -> None:
    path = folder / "config.json"
    original = path.read_text()
    count = 0
    for key in json.loads(original):
        for value in VALUES[::2]:
            path.write_text(replaced(original, (key,), value))
            count += refused(lambda: plan(folder))
    path.write_text(original)
    assert count > 120
    assert not refused(lambda: plan(folder))


def test_values_of_the_tokenizer(folder: Path) -> None:
    config = Checkpoint(folder).config
    for name in ("tokenizer.json", "tokenizer_config.json"):
        path = folder / name
        original = path.read_text()
        for place in places(json.loads(original)):
            for value in VALUES:
                path.write_text(replaced(original, place, value))
                refused(lambda: tokenizer(folder, config))
        path.write_text(original)
    assert not refused(lambda: tokenizer(folder, config))


def test_values_of_the_index(folder: Path) -> None:
    path = folder / INDEX
    original = path.read_text()
    for value in VALUES:
        for whole in (value, {"weight_map": value}, {"weight_map": {"embed.weight": value}}):
            path.write_text(json.dumps(whole))
            assert refused(lambda: plan(folder))
    path.write_text(original)


def test_bytes_of_a_header(folder: Path, tmp_path: Path) -> None:
    data = (folder / "model-00003-of-00005.safetensors").read_bytes()
    size = 8 + int.from_bytes(data[:8], "little")
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.safetensors"
    count = 0
    for _ in range(200):
        damaged = bytearray(data)
        for place in rng.integers(0, size, rng.integers(1, 4)):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged)
        count += refused(lambda: read_header(path))
    assert count > 100
