"""On the CPU a row's bits depend on its tokens alone: not on chunks, on rows beside it, or on threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import checkpoints
import numpy as np
import pytest
from converting import convert
from device import DEVICE, open_engine
from generating import GREEDY, ids_of
from paths import GOLDEN

import ds4py

TOKENS = 300  # past the first choices of the indexer, and two blocks of the larger ratio


@pytest.fixture(scope="module", params=["f32", "f16", "q8", "mxfp4"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden pair with weights of a preset's types, as target.gguf and drafter.gguf."""
    folder = tmp_path_factory.mktemp(request.param)
    source = checkpoints.golden("f32", drafter=True).write(folder / "checkpoint")
    checkpoints.write_tokenizer(source)
    convert(source, folder / "target.gguf", "--drafter", str(folder / "drafter.gguf"), "--preset", request.param)
    return folder


def chunks(size: int) -> Iterator[slice]:
    """The tokens in pieces of a size."""
    return (slice(first, first + size) for first in range(0, TOKENS, size))


def all_logits(path: Path, threads: int, size: int, kv_dtype: Literal["f16", "f32"] = "f16") -> np.ndarray:
    """The bits of the logits of every position."""
    tokens = np.random.default_rng(4).integers(3, 500, TOKENS)
    with open_engine(path, threads=threads) as engine, engine.session(context=512, kv_dtype=kv_dtype) as session:
        rows = [session.evaluate(tokens[part].tolist()).copy() for part in chunks(size)]
    return np.concatenate(rows).view(np.uint32)


def test_chunks_and_threads(folder: Path) -> None:
    wanted = all_logits(folder / "target.gguf", 1, TOKENS)
    for threads, size in ((1, 1), (2, 5), (3, 16), (4, 64), (4, TOKENS)):
        assert np.array_equal(all_logits(folder / "target.gguf", threads, size), wanted), (threads, size)


def test_rows_of_a_verify(folder: Path) -> None:
    tokens = np.random.default_rng(5).integers(3, 500, 64).tolist()
    with open_engine(folder / "target.gguf") as engine, engine.session(context=128) as session:
        session.prefill(tokens[:40])
        wanted = {}
        for place in range(40, 56):
            session.anchor = tokens[place]
            wanted[place] = session.verify()[0].copy()
            session.commit(0, None)
        for rows in range(1, 17):
            session.rewind(40)
            session.anchor = tokens[40]
            found = session.verify(tokens[41 : 40 + rows])
            for row in range(rows):
                assert np.array_equal(found[row].view(np.uint32), wanted[40 + row].view(np.uint32)), (rows, row)


def test_greedy_speculation_is_plain_decoding(folder: Path) -> None:
    rng = np.random.default_rng(6)
    with (
        ds4py.Engine(folder / "target.gguf", drafter=folder / "drafter.gguf", device=DEVICE, threads=1) as engine,
        engine.session(context=64) as session,
    ):
        for _ in range(8):
            prompt = rng.integers(3, 500, rng.integers(4, 20)).tolist()
            texts = []
            for width in range(6):
                session.rewind(0)
                texts.append(ids_of(list(session.generate(prompt, max_tokens=24, sampling=GREEDY, width=width))))
            assert all(text == texts[0] for text in texts)


def test_the_generic_path_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    path = GOLDEN / "tiny-target-f32.gguf"
    own = all_logits(path, 1, 64, "f32").view(np.float32)
    monkeypatch.setenv("DS4_OPS", "generic")
    generic = all_logits(path, 1, 64, "f32").view(np.float32)
    apart = np.linalg.norm(own - generic, axis=1) / np.linalg.norm(generic, axis=1)
    assert np.median(apart) < 1e-5  # single rows may choose another expert or block at a near tie
    assert not np.array_equal(own, generic)  # it is another path
    monkeypatch.delenv("DS4_OPS")
    with ds4py.Engine(path, device=DEVICE, threads=1, repack=False) as engine:
        assert not engine.repacked
    with ds4py.Engine(path, device=DEVICE, threads=1) as engine:
        assert engine.repacked
