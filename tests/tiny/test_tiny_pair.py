"""The pair inside the package: what PyTorch computes with its weights (tiny/reference.py), and what drafting brings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from device import DEVICE
from gguf_tools import in_f32
from numpy.typing import NDArray
from paths import GOLDEN

from ds4py import Engine, Sampling, Session, data

RECORDS = "[\n" + "".join(
    f'  {{"id": {100 + i}, "name": "{name}", "city": "{city}", "active": {active}}},\n'
    for i, (name, city, active) in enumerate(
        [("Ann", "Oslo", "true"), ("Ben", "Bergen", "false"), ("Cleo", "Turku", "true"), ("Dan", "Malmo", "true")]
    )
)


@pytest.fixture(scope="module")
def wanted() -> dict[str, NDArray[np.generic]]:
    with np.load(GOLDEN / "tiny-pair.npz") as file:
        return dict(file)


@pytest.fixture(scope="module")
def widened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The files' values in F32: activations are not quantised then."""
    folder = tmp_path_factory.mktemp("widened")
    target, drafter = (in_f32(path, folder / path.name) for path in (data.TARGET, data.DRAFTER))
    with Engine(target, drafter=drafter, device=DEVICE, threads=1) as engine:
        yield engine


@pytest.fixture(scope="module")
def shipped() -> Iterator[Engine]:
    with Engine(device=DEVICE) as engine:
        yield engine


def session_of(engine: Engine) -> Session:
    return engine.session(context=1024, kv_dtype="f32")


def test_logits(widened: Engine, wanted: dict[str, NDArray[np.generic]]) -> None:
    with session_of(widened) as session:
        found = session.evaluate(wanted["tokens"])[wanted["positions"]]
    assert np.abs(found - wanted["logits"]).max() < 2e-4


def test_drafts(widened: Engine, wanted: dict[str, NDArray[np.generic]]) -> None:
    with session_of(widened) as session:
        for anchor, tokens, confidences in zip(*(wanted[n] for n in ("anchors", "drafts", "confidences")), strict=True):
            session.prefill(wanted["tokens"][len(session.history()) : anchor])
            session.anchor = int(wanted["tokens"][anchor])
            block = session.draft()
            assert list(block.tokens) == list(tokens), anchor
            np.testing.assert_allclose(block.confidence, confidences, atol=1e-4)


def test_sizes() -> None:
    assert data.TARGET.stat().st_size <= 16e6
    assert data.DRAFTER.stat().st_size <= 6e6


def test_the_card_is_in_the_package() -> None:
    card = Path(data.CARD).read_text(encoding="utf-8")
    assert "| domain |" in card
    assert "licence" in card


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_records_are_drafted(shipped: Engine, temperature: float) -> None:
    with shipped.session() as session:
        sampling = Sampling(temperature=temperature, seed=1)
        list(session.generate(RECORDS, max_tokens=200, sampling=sampling, draft="dspark", width=5))
        assert session.stats.speculation.emitted_per_cycle > 1.7


def test_greedy_drafting_is_plain_decoding(shipped: Engine, wanted: dict[str, NDArray[np.generic]]) -> None:
    """Byte for byte, with quantised weights: 200 pieces of text at every width."""
    rng = np.random.default_rng(7)
    with shipped.session() as session:
        for _ in range(200):
            first, length = rng.integers(600), rng.integers(2, 40)
            texts = []
            for width in range(6):
                session.rewind(0)
                prompt = wanted["tokens"][first : first + length]
                pieces = session.generate(prompt, max_tokens=16, sampling=Sampling(temperature=0), width=width)
                texts.append([token for piece in pieces for token in piece.tokens])
            assert all(text == texts[0] for text in texts), (first, length)


def test_an_echo_is_looked_up_rather_than_drafted(shipped: Engine) -> None:
    """Greedy text of a small model repeats itself, and what was there before costs nothing to propose."""
    found = {}
    for draft in ("dspark", "lookup"):
        with shipped.session() as session:
            list(session.generate(RECORDS, max_tokens=200, sampling=Sampling(temperature=0), draft=draft, width=15))
            found[draft] = session.stats
    assert found["lookup"].speculation.emitted_per_cycle > found["dspark"].speculation.emitted_per_cycle
    assert found["lookup"].speculation.emitted_per_cycle > 2
