"""Logits against independent implementations (golden/README.md), along every path a prompt can take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from device import ROUNDING
from paths import GOLDEN

from ds4py import Engine, Sampling, Session

pytestmark = [pytest.mark.fast, pytest.mark.on_device]

CHUNKS = (1, 7, 64, 37)
F32_BOUND = {"tiny": 2e-4 * ROUNDING, "hard": 3e-4 * ROUNDING}
F16_KV_BOUND = 5e-3 * min(ROUNDING, 4)  # relative, golden/README.md


@pytest.fixture(params=["tiny", "hard"])
def case(request: pytest.FixtureRequest) -> tuple[str, Engine]:
    return request.param, request.getfixturevalue(request.param)


def golden(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """tokens, positions that have logits, those logits, and the arg max at every position."""
    file = np.load(GOLDEN / {"tiny": "target-golden.npz", "hard": "hard-golden.npz"}[name])
    if name == "tiny":
        return file["tokens"], file["positions"], file["logits"], file["argmax"]
    return file["tokens"], np.arange(len(file["tokens"])), file["logits"], file["logits"].argmax(1)


def in_chunks(session: Session, tokens: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([session.evaluate(tokens[i : i + size]) for i in range(0, len(tokens), size)])


def check(name: str, logits: np.ndarray) -> None:
    _, positions, wanted, argmax = golden(name)
    assert np.abs(logits[positions] - wanted).max() <= F32_BOUND[name]
    np.testing.assert_array_equal(logits.argmax(1), argmax)


@pytest.fixture
def session(case: tuple[str, Engine]) -> Iterator[Session]:
    with case[1].session(context=1024, kv_dtype="f32") as session:
        yield session


def test_evaluate_in_one_call(case: tuple[str, Engine], session: Session) -> None:
    check(case[0], session.evaluate(golden(case[0])[0]))


@pytest.mark.parametrize("size", CHUNKS)
def test_evaluate_in_chunks(case: tuple[str, Engine], session: Session, size: int) -> None:
    check(case[0], in_chunks(session, golden(case[0])[0], size))


@pytest.mark.parametrize("length", [1, 31, 32, 33, 127, 128, 129, 511, 512, 513, 600])
def test_prefill_ends_at_the_same_logits(case: tuple[str, Engine], session: Session, length: int) -> None:
    """A prompt's chunks are wider than evaluate's and keep the last row alone."""
    tokens, positions, wanted, argmax = golden(case[0])
    session.prefill(tokens[:length])
    assert session.logits().argmax() == argmax[length - 1]
    if length - 1 in positions:
        row = wanted[list(positions).index(length - 1)]
        assert np.abs(session.logits() - row).max() <= F32_BOUND[case[0]]


@pytest.mark.parametrize("cut", [1, 37, 130, 300, 515])
def test_save_and_restore_in_the_middle(case: tuple[str, Engine], session: Session, cut: int, tmp_path: Path) -> None:
    name, engine = case
    tokens = golden(name)[0]
    first = session.evaluate(tokens[:cut])
    session.save(tmp_path / "state")
    with engine.load_session(tmp_path / "state") as restored:
        np.testing.assert_array_equal(restored.logits(), first[-1])
        check(name, np.concatenate([first, in_chunks(restored, tokens[cut:], 37)]))


def test_f16_keys_stay_close(tiny: Engine) -> None:
    tokens, positions, wanted, _ = golden("tiny")
    with tiny.session(context=1024, kv_dtype="f16") as session:
        logits = session.evaluate(tokens)[positions]
    errors = np.linalg.norm(logits - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert errors.max() <= F16_KV_BOUND


def test_greedy_continuation(tiny: Engine) -> None:
    file = np.load(GOLDEN / "target-golden.npz")
    prompt = file["tokens"][: int(file["greedy_prefix_len"])]
    with tiny.session(context=1024, kv_dtype="f32") as session:
        pieces = session.generate(prompt, max_tokens=len(file["greedy"]), sampling=Sampling(temperature=0))
        assert [token for piece in pieces for token in piece.tokens] == list(file["greedy"])
