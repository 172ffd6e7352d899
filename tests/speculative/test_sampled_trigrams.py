"""Sampled speculative text against the target's own law: the next three tokens, by the whole path of a generation."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from chi_square import Law, bound, chi_square

from ds4py import Sampling, Session, _native
from ds4py.speculative import (
    Auto,
    Breaker,
    Confidence,
    Draft,
    Drafter,
    DSparkDrafter,
    Ewma,
    Fixed,
    ScriptedDrafter,
    Staged,
    Width,
)
from ds4py.speculative.draft_length import MOST

KEPT = 3  # tokens that the policy leaves at each step: 27 texts of three tokens
POLICY = Sampling(temperature=2.0, top_k=KEPT)
ANCHOR = 77


class Truth:
    """The target's distributions after the session's prompt and ANCHOR, by the tokens that follow."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._start = session.position
        self._sampler = _native.Sampler(POLICY.policy())
        self.after = cache(self._after)

    def _after(self, tokens: tuple[int, ...]) -> npt.NDArray[np.float32]:
        self._session.rewind(self._start)
        row: npt.NDArray[np.float32] = self._sampler.distribution(self._session.evaluate([ANCHOR, *tokens])[-1])
        return row

    def likely(self, tokens: tuple[int, ...]) -> list[int]:
        return [int(token) for token in np.flatnonzero(self.after(tokens))]

    def law(self) -> Law:
        """The probability of every text of three tokens."""
        found: Law = {}
        for a in self.likely(()):
            for b in self.likely((a,)):
                for c in self.likely((a, b)):
                    found[a, b, c] = (
                        float(self.after(())[a]) * float(self.after((a,))[b]) * float(self.after((a, b))[c])
                    )
        return found


def half_right(truth: Truth, start: int) -> Drafter:
    """Draws two proposals from q = (p + 1/3) / 2 over what the policy keeps: near to p, and not p.

    It knows how likely each is accepted, once those before it are drawn.
    """
    rng = np.random.default_rng(3)

    def propose(history: npt.NDArray[np.int32]) -> Draft:
        known = tuple(history[start + 1 :].tolist())
        tokens: list[int] = []
        rows = []
        confidence: list[float] = []
        for _ in range(2):
            before = (*known, *tokens)
            ids = truth.likely(before)
            q = ((truth.after(before)[ids] + 1 / len(ids)) / 2).astype(np.float32)
            tokens.append(ids[int(_native.draw(q, rng.random()))])
            rows.append((ids, q))
            confidence.append(float(np.minimum(q, truth.after(before)[ids]).sum()))
        return Draft(
            np.array(tokens, np.int32),
            np.array([q for _, q in rows]),
            np.array([ids for ids, _ in rows], np.int32),
            np.array(confidence, np.float32),
        )

    return ScriptedDrafter(propose)


def texts(
    session: Session, start: int, drafter: Drafter, rule: str, count: int, width: int | str | Width = MOST
) -> Counter[tuple[int, ...]]:
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(count):
        session.rewind(start)
        session.anchor = ANCHOR
        sampling = Sampling(temperature=POLICY.temperature, top_k=KEPT, seed=seed)
        pieces = session.generate(
            max_tokens=3,
            sampling=sampling,
            draft=drafter,
            width=width,
            accept=rule,  # type: ignore[arg-type]
        )
        found[tuple(itertools.chain.from_iterable(piece.tokens for piece in pieces))] += 1
    return found


@pytest.mark.parametrize("rule", ["token", "match", "block"])
def test_three_tokens_follow_the_targets_law(prompted: Session, rule: str) -> None:
    start = prompted.position
    truth = Truth(prompted)
    law = truth.law()
    assert sum(law.values()) == pytest.approx(1, abs=1e-5)
    found = texts(prompted, start, half_right(truth, start), rule, 1500)
    assert set(found) <= set(law)
    statistic, freedom = chi_square(found, law)
    assert freedom > 8
    assert statistic < bound(freedom)
    # The same counts are far from a law that is only near the target's.
    assert chi_square(found, flattened(law))[0] > bound(freedom)


@pytest.mark.parametrize(
    "width",
    [Auto(), Confidence(), Confidence([0.9, 0.7]), Ewma(), Staged(), Breaker(Fixed(2), 0.9, 2, 1)],
    ids=["auto", "confidence", "sure", "ewma", "staged", "breaker"],
)
def test_every_width_keeps_the_law(prompted: Session, width: Width) -> None:
    start = prompted.position
    truth = Truth(prompted)
    law = truth.law()
    statistic, freedom = chi_square(texts(prompted, start, half_right(truth, start), "token", 1000, width), law)
    assert statistic < bound(freedom)


def flattened(law: Law) -> Law:
    """Every text as likely as the square root of its probability says."""
    roots = {text: p**0.5 for text, p in law.items()}
    return {text: root / sum(roots.values()) for text, root in roots.items()}


def test_three_tokens_of_the_models_own_drafter(prompted: Session) -> None:
    start = prompted.position
    law = Truth(prompted).law()
    statistic, freedom = chi_square(texts(prompted, start, DSparkDrafter(shortlist=64), "token", 600), law)
    assert statistic < bound(freedom)
