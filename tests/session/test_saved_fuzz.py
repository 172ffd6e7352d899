"""Damage anywhere in a saved session is refused, or changes nothing: never a crash, never another continuation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from generating import GREEDY, PROMPT, ids_of

import ds4py
from ds4py import Engine, _native

FLIPS, CUTS = 200, 20


@pytest.fixture(scope="module")
def saved(pair: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, bytes, list[int]]]:
    """A saved session with a checkpoint, its bytes, and how it goes on."""
    path = tmp_path_factory.mktemp("saved") / "state"
    with pair.session(context=512) as session:
        session.prefill(PROMPT[:150], checkpoints=[70])
        session.save(path, checkpoints=[70])
        going_on = ids_of(list(session.generate(max_tokens=6, sampling=GREEDY, draft="dspark", draft_length=3)))
    yield path, path.read_bytes(), going_on


def continuation(engine: Engine, path: Path) -> list[int] | None:
    """How the session goes on, from its frontier; None where the file is refused."""
    try:
        session = engine.load_session(path)
    except ds4py.FormatError:
        return None
    with session:
        assert session.tokens == PROMPT[:150]
        return ids_of(list(session.generate(max_tokens=6, sampling=GREEDY, draft="dspark", draft_length=3)))


def places(size: int) -> list[int]:
    """All of the header and of the checksum by samples, and the rest at random."""
    generator = np.random.default_rng(11)
    ends = [*generator.choice(96, 60, replace=False), *(size - 1 - generator.choice(8, 8, replace=False))]
    return [int(at) for at in [*ends, *generator.integers(96, size - 8, FLIPS - len(ends))]]


def test_single_flips(pair: Engine, saved: tuple[Path, bytes, list[int]]) -> None:
    path, data, wanted = saved
    assert continuation(pair, path) == wanted
    refused = 0
    for turn, at in enumerate(places(len(data))):
        damaged = bytearray(data)
        damaged[at] ^= 1 << turn % 8
        path.write_bytes(damaged)
        got = continuation(pair, path)
        assert got in (None, wanted), f"byte {at}"
        refused += got is None
        peek(path)
    path.write_bytes(data)
    assert refused == FLIPS  # every byte is under the checksum


def test_cuts(pair: Engine, saved: tuple[Path, bytes, list[int]]) -> None:
    path, data, _ = saved
    generator = np.random.default_rng(12)
    for length in [0, 1, 95, 96, 103, len(data) - 1, *map(int, generator.integers(104, len(data), CUTS - 6))]:
        path.write_bytes(data[:length])
        assert continuation(pair, path) is None
        peek(path)
    path.write_bytes(data + b"\0" * 8)
    assert continuation(pair, path) is None
    path.write_bytes(data)


def peek(path: Path) -> None:
    """Reading the beginning alone refuses, too, or says what it finds; it never asks for more memory than the file."""
    try:
        found = _native.read_saved_session(str(path))
    except ds4py.FormatError:
        return
    assert 4 * len(found.tokens) + 8 * len(found.checkpoints) <= path.stat().st_size
