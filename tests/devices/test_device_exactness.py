"""Sampled text of a session that drafts and accepts by a device's own kernels, against the target's own law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from chi_square import Law, bound, chi_square
from device_sessions import open_on_device
from generating import CONTINUATION, PROMPT, ids_of

import ds4py
from ds4py import Engine, Sampling, Session, _native
from ds4py.speculative import Draft, Drafter, ScriptedDrafter

Row = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Place:
    """Where texts begin, and how hot they are."""

    start: Sequence[int]
    anchor: int
    temperature: float

    @property
    def sampling(self) -> Sampling:
        return Sampling(temperature=self.temperature)


VARIED = Place(range(100, 140), 77, 0.4)
"""Some texts of two tokens are likely."""
AGREEING = Place(PROMPT + CONTINUATION[:5], CONTINUATION[5], 0.5)
"""Target and drafter agree in part."""


class Truth:
    """The target's distributions after a place, by a session without kernels of a device."""

    def __init__(self, engine: Engine, place: Place) -> None:
        self._session = engine.session(context=512, kv_dtype="f32")
        self._session.prefill(place.start)
        self._place = place
        self._sampler = _native.Sampler(place.sampling.policy())

    def after(self, *tokens: int) -> Row:
        self._session.rewind(len(self._place.start))
        row: Row = self._sampler.distribution(self._session.evaluate([self._place.anchor, *tokens])[-1])
        return row

    def law(self, least: float) -> Law:
        """Of texts of two tokens, those of at least this probability."""
        first = self.after()
        found: Law = {}
        for a in np.flatnonzero(first >= least).tolist():
            second = first[a] * self.after(a)
            found |= {(a, b): float(second[b]) for b in np.flatnonzero(second >= least).tolist()}
        return found


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, pair: Engine) -> Iterator[Session]:
    with open_on_device(monkeypatch, pair) as session:
        yield session


def likeliest_wrong(truth: Truth) -> Drafter:
    """Proposes the second likeliest token: q is 1 at it."""
    first = int(truth.after().argsort()[-2])
    return ScriptedDrafter(lambda history: Draft.point_mass([first]))


@pytest.mark.parametrize("who", ["certain", "plain"])
def test_texts_follow_the_law(device: Session, pair: Engine, who: str) -> None:
    """Two tokens, after a proposal that is certain or after none."""
    count, truth = 150, Truth(pair, VARIED)
    device.prefill(VARIED.start)
    drafter = likeliest_wrong(truth) if who == "certain" else "off"
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(count):
        device.rewind(len(VARIED.start))
        device.anchor = VARIED.anchor
        sampling = replace(VARIED.sampling, seed=seed)
        found[
            tuple(ids_of(list(device.generate((), max_tokens=2, sampling=sampling, draft=drafter, draft_length=1))))
        ] += 1
    statistic, freedom = chi_square(found, truth.law(8 / count))
    assert freedom >= 4
    assert statistic < bound(freedom)


def test_proposals_are_judged_by_p_and_q(device: Session, pair: Engine) -> None:
    """Each follows q, stands with probability min(1, p / q), and is else corrected from what p has above q.

    The emulator is slow: each of a few drafts is judged several times.
    """
    p, sampling = Truth(pair, AGREEING).after(), AGREEING.sampling
    device.prefill(AGREEING.start)
    device.anchor = AGREEING.anchor
    q = device.draft(sampling, ds4py.Rng(1000)).q_probs[0]
    proposals, corrections = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    stood = expected = variance = 0.0
    for seed in range(24):
        draft = device.draft(sampling, ds4py.Rng(seed))
        token = int(draft.tokens[0])
        proposals[token,] += 1
        chance = min(1.0, float(p[token] / q[token]))
        device.verify_on_device(draft.tokens[:1])
        for again in range(12):
            accepted, after = device.accept(draft, sampling.temperature, ds4py.Rng(seed, again))
            stood, expected = stood + accepted, expected + chance
            variance += chance * (1 - chance)
            if not accepted:
                corrections[after,] += 1
    assert variance > 20
    assert abs(stood - expected) < 4 * variance**0.5
    residual = np.maximum(p - q, 0)
    for found, law, least in ((proposals, q, 1), (corrections, residual / residual.sum(), 3)):
        statistic, freedom = chi_square(found, {(i,): float(each) for i, each in enumerate(law)})
        assert freedom >= least
        assert statistic < bound(freedom)


def test_a_generation_is_these_steps(device: Session) -> None:
    """The loop draws and judges what the same seed does by hand."""
    sampling = AGREEING.sampling
    device.prefill(AGREEING.start)
    for seed in range(4):
        device.anchor, rng = AGREEING.anchor, ds4py.Rng(seed)
        draft = device.draft(sampling, rng)
        device.verify_on_device(draft.tokens[:2])
        accepted, token = device.accept(draft, sampling.temperature, rng)
        seeded = replace(sampling, seed=seed)
        pieces = device.generate((), max_tokens=9, sampling=seeded, draft="dspark", draft_length=2)
        assert next(pieces).tokens == (*draft.tokens[:accepted].tolist(), token)
        pieces.close()  # type: ignore[attr-defined]
        device.rewind(len(AGREEING.start))
