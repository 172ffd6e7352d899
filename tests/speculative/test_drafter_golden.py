"""Drafts against the golden vectors of an independent implementation (golden/README.md)."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import numpy as np
import pytest
from device import ROUNDING
from drafting import (
    WINDOW,
    Draft,
    draft,
    golden,
    golden_drafter,
    log_softmax,
    open_session,
    prompt,
    relative_error,
    sampler,
    target,
)
from saved_state import visible_state

from ds4py import _native

pytestmark = [pytest.mark.fast, pytest.mark.on_device]

F32_BOUND, F16_KV_BOUND, CONFIDENCE_BOUND = 1e-4 * ROUNDING, 5e-3 * min(ROUNDING, 4), 2e-4 * ROUNDING
CONTEXTS, ANCHORS = golden()["contexts"], golden()["anchors"]
CASES = pytest.mark.parametrize("case", range(len(CONTEXTS)), ids=[f"context {n}" for n in CONTEXTS])


def grown(session: _native.Session, length: int, chunk: int) -> _native.Session:
    """The session with the golden prompt up to `length`, extended by so many tokens a call."""
    while session.position < length:
        session.prefill(prompt(length)[session.position : session.position + chunk])
    return session


def errors(found: Draft, case: int, variant: str = "ring") -> tuple[float, float]:
    """Relative, of the hidden rows and of the base logits."""
    hidden, base = (golden()[f"{variant}_{name}"][case] for name in ("hidden", "base_logits"))
    return relative_error(found.hidden, hidden), relative_error(found.base, base)


def check(found: Draft, case: int) -> None:
    assert max(errors(found, case)) <= F32_BOUND
    np.testing.assert_array_equal(found.tokens, golden()["ring_tokens"][case])
    np.testing.assert_allclose(found.confidence, golden()["ring_conf_prob"][case], atol=CONFIDENCE_BOUND)


@pytest.mark.parametrize("chunk", [1, 37, 200])
def test_contexts_in_chunks_of_one_session(chunk: int) -> None:
    """Each draft finds some positions already projected to the context rings, and projects the others."""
    session = open_session()
    for case, (length, anchor) in enumerate(zip(CONTEXTS, ANCHORS, strict=True)):
        check(draft(grown(session, length, chunk), anchor), case)


@CASES
def test_context_in_one_piece(case: int) -> None:
    """No row looks through a window of its own: a mask by distance would hide the oldest context from later rows."""
    session = open_session(prompt(CONTEXTS[case]))
    assert session.logits().argmax() == ANCHORS[case]
    found = draft(session, ANCHORS[case])
    check(found, case)
    if CONTEXTS[case] >= WINDOW:
        assert min(errors(found, case, "swa")) > 100 * F32_BOUND


@CASES
def test_f16_keys_stay_close(case: int) -> None:
    found = draft(open_session(prompt(CONTEXTS[case]), kv_dtype="f16"), ANCHORS[case])
    assert max(errors(found, case)) <= F16_KV_BOUND
    np.testing.assert_array_equal(found.tokens, golden()["ring_tokens"][case])
    np.testing.assert_allclose(found.confidence, golden()["ring_conf_prob"][case], atol=F16_KV_BOUND)


def test_context_keys(tmp_path: Path) -> None:
    """The rings of every stage hold the keys of the last positions."""
    session = open_session(prompt(200))
    session.draft(7)
    found = visible_state(session, (target(), golden_drafter()), tmp_path / "state")
    for stage, wanted in enumerate(golden()["ctx_kv_200"]):
        assert relative_error(found[f"context {stage}"], wanted) <= F32_BOUND


def seed_that_draws(tokens: np.ndarray, q: np.ndarray, margin: float = 1e-4) -> int:
    """A generator whose next numbers fall on `tokens`, well inside of what they have of the cumulative q."""
    rows = np.arange(len(tokens))
    end = np.cumsum(q, axis=1)[rows, tokens]
    begin = end - q[rows, tokens]

    def fits(seed: int) -> bool:
        rng = _native.Rng(seed)
        return all(low + margin < rng.uniform() < high - margin for low, high in zip(begin, end, strict=True))

    return next(seed for seed in count() if fits(seed))


@CASES
def test_logits_with_the_markov_bias(case: int) -> None:
    """They show in the distribution that is drawn from, here along the golden tokens."""
    tokens, wanted = golden()["ring_tokens"][case], log_softmax(golden()["ring_biased_logits"][case])
    rng = _native.Rng(seed_that_draws(tokens, np.exp(wanted)))
    found = draft(open_session(prompt(CONTEXTS[case])), ANCHORS[case], sampler=sampler(), rng=rng)
    np.testing.assert_array_equal(found.tokens, tokens)
    np.testing.assert_allclose(np.log(found.q), wanted, atol=F32_BOUND)


def greedy_rounds(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Frontier, anchor, drafts and accepted count of each cycle after the golden prefix; and the confidences."""
    session = open_session(prompt(int(golden("target")["greedy_prefix_len"])))
    anchor = int(session.logits().argmax())
    rows, confidences = [], []
    for _ in range(rounds):
        found = draft(session, anchor)
        expected = session.verify(np.append(np.int32(anchor), found.tokens)).argmax(1)
        accepted = int(np.cumprod(expected[:-1] == found.tokens).sum())
        rows.append([session.position, anchor, *found.tokens, accepted])
        confidences.append(found.confidence)
        session.commit(accepted + 1)
        anchor = int(expected[accepted])
    return np.array(rows), np.array(confidences)


def test_greedy_rounds() -> None:
    wanted, wanted_confidences = golden()["rounds_ring"], golden()["rounds_ring_conf"]
    rows, confidences = greedy_rounds(len(wanted))
    np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_allclose(confidences, wanted_confidences, atol=CONFIDENCE_BOUND)
    assert set(rows[:, -1]) == {0, 1, 2, 3, 5}
    other = golden()["rounds_swa"]
    assert not np.array_equal(rows[: len(other)], other)
