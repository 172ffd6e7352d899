"""Rejected rows leave nothing behind: every frontier, every number of accepted proposals (docs/dspark.md section 4.6).

The true continuation of a prompt is known, so a verify of it with a tail of junk accepts a chosen number of rows. Each
row's logits are compared with one evaluation of the same tokens.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from device import DEVICE, ROUNDING
from paths import GOLDEN
from saved_state import visible_state

from ds4py import _native

pytestmark = pytest.mark.on_device

BLOCK = 5
LENGTH = 400
REGIONS = ((0, 150), (248, 262), (378, 392))  # three laps of the raw ring of 47 rows and more, ends of 128-blocks
BOUND = 1e-5 * ROUNDING  # relative


@pytest.fixture(scope="module")
def pair() -> tuple[_native.Model, _native.Drafter]:
    model = _native.Model.load(str(GOLDEN / "tiny-target-f32.gguf"), device=DEVICE, threads=1)
    return model, _native.Drafter.load(str(GOLDEN / "tiny-drafter-f32.gguf"), model)


@pytest.fixture(scope="module")
def truth(pair: tuple[_native.Model, _native.Drafter]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens and the logits of a fresh evaluation."""
    tokens = np.load(GOLDEN / "target-golden.npz")["tokens"][: LENGTH + BLOCK + 1].astype(np.int32)
    return tokens, open_session(pair).evaluate(tokens)


def open_session(pair: tuple[_native.Model, _native.Drafter]) -> _native.Session:
    return _native.Session(pair[0], context=1024, kv_dtype="f32", drafter=pair[1])


def block_at(tokens: np.ndarray, frontier: int, accepted: int, junk: int = 1) -> np.ndarray:
    """The anchor at `frontier`, so many true proposals, and false ones."""
    rows = tokens[frontier : frontier + BLOCK + 1].copy()
    rows[accepted + 1 :] = (rows[accepted + 1 :] + junk) % 512
    return rows


def relative_errors(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1))


def next_error(session: _native.Session, truth: tuple[np.ndarray, np.ndarray]) -> float:
    """Of the row that one more token of the truth gives; nothing is committed."""
    tokens, logits = truth
    row = slice(session.position, session.position + 1)
    return float(relative_errors(session.verify(tokens[row]), logits[row]).max())


@pytest.mark.parametrize("accepted", range(BLOCK + 1))
def test_every_frontier(
    pair: tuple[_native.Model, _native.Drafter], truth: tuple[np.ndarray, np.ndarray], accepted: int
) -> None:
    """From every frontier `accepted` proposals are accepted and the rest rejected; all offsets are walked."""
    tokens, logits = truth
    worst = 0.0
    for (begin, end), offset in itertools.product(REGIONS, range(accepted + 1)):
        session = open_session(pair)
        if begin + offset:
            session.prefill(tokens[: begin + offset])
        for frontier in range(begin + offset, end, accepted + 1):
            kept = session.verify(block_at(tokens, frontier, accepted))[: accepted + 1]
            worst = max(worst, relative_errors(kept, logits[frontier : frontier + accepted + 1]).max())
            session.commit(accepted + 1)
        assert list(session.tokens) == list(tokens[: session.position])
    assert worst <= BOUND


def test_the_walk_would_see_a_row_too_many(
    pair: tuple[_native.Model, _native.Drafter], truth: tuple[np.ndarray, np.ndarray]
) -> None:
    """Committing one rejected row moves the next logits by more than ten times the bound."""
    tokens, _ = truth
    session = open_session(pair)
    session.prefill(tokens[:100])
    session.verify(block_at(tokens, 100, accepted=1))
    session.commit(3)
    assert next_error(session, truth) > 10 * BOUND


FRONTIERS = sorted({at + offset for at in (32, 47, 94, 128, 141, 256, 384) for offset in range(-6, 3)})


@pytest.mark.parametrize("accepted", range(BLOCK + 1))
def test_the_state_does_not_depend_on_what_was_rejected(
    pair: tuple[_native.Model, _native.Drafter],
    truth: tuple[np.ndarray, np.ndarray],
    accepted: int,
    tmp_path: Path,
) -> None:
    """Two sessions that reject different rows end in the same bytes, and in those of a prompt up to rounding."""
    tokens, _ = truth
    for frontier in FRONTIERS[accepted::6]:
        found = []
        for junk in (1, 200):
            session = open_session(pair)
            session.prefill(tokens[:frontier])
            session.verify(block_at(tokens, frontier, accepted, junk))
            session.commit(accepted + 1)
            found.append(visible_state(session, pair, tmp_path / "state"))
        fresh = open_session(pair)
        fresh.prefill(tokens[: frontier + accepted + 1])
        wanted = visible_state(fresh, pair, tmp_path / "state")
        assert found[0].keys() == wanted.keys()
        for name, rows in wanted.items():
            np.testing.assert_array_equal(found[0][name], found[1][name], err_msg=f"{name} at {frontier}")
            np.testing.assert_allclose(
                found[0][name], rows, rtol=10 * BOUND, atol=2 * BOUND, err_msg=f"{name} at {frontier}"
            )


def test_sessions_side_by_side(
    pair: tuple[_native.Model, _native.Drafter], truth: tuple[np.ndarray, np.ndarray]
) -> None:
    """Two sessions take turns, drafting in between; neither sees the other."""
    tokens, logits = truth
    rng = np.random.default_rng(5)
    sessions = [open_session(pair), open_session(pair)]
    for session, start in zip(sessions, (61, 250), strict=True):
        session.prefill(tokens[:start])
    for _ in range(60):
        session = sessions[int(rng.integers(2))]
        frontier, accepted = session.position, int(rng.integers(BLOCK + 1))
        if frontier >= LENGTH:
            continue
        session.draft(int(tokens[frontier]))
        kept = session.verify(block_at(tokens, frontier, accepted))[: accepted + 1]
        assert relative_errors(kept, logits[frontier : frontier + accepted + 1]).max() <= BOUND
        session.commit(accepted + 1)


@pytest.mark.parametrize("frontier", [30, 46, 93, 126, 254, 255, 381])
@pytest.mark.parametrize("accepted", [0, 2, 5])
def test_saved_between_cycles(
    pair: tuple[_native.Model, _native.Drafter],
    truth: tuple[np.ndarray, np.ndarray],
    frontier: int,
    accepted: int,
    tmp_path: Path,
) -> None:
    """A session saved after a rejection and read back goes on with the same bits, its drafter too."""
    tokens, _ = truth
    session = open_session(pair)
    session.prefill(tokens[:frontier])
    session.verify(block_at(tokens, frontier, accepted))
    session.commit(accepted + 1)
    session.save(str(tmp_path / "state"))
    restored = _native.Session.load(pair[0], str(tmp_path / "state"), drafter=pair[1])
    rows = block_at(tokens, session.position, 3)
    before, after = session.draft(int(rows[0])), restored.draft(int(rows[0]))
    np.testing.assert_array_equal(before.tokens, after.tokens)
    np.testing.assert_array_equal(before.confidence, after.confidence)
    np.testing.assert_array_equal(session.verify(rows), restored.verify(rows))


def test_rejections_then_a_rewind(
    pair: tuple[_native.Model, _native.Drafter], truth: tuple[np.ndarray, np.ndarray]
) -> None:
    """Going back right after a rejected block, inside and beyond the rings' slack."""
    tokens, _ = truth
    for back in (1, 4, 10, 11, 17, 60):
        session = open_session(pair)
        session.prefill(tokens[:200])
        session.verify(block_at(tokens, 200, 0))
        session.commit(1)
        target = 201 - back
        session.rewind(target)
        assert next_error(session, truth) <= BOUND
        session.commit(1)
        fresh = open_session(pair)
        fresh.prefill(tokens[: target + 1])
        anchor = int(tokens[target + 1])
        found, wanted = session.draft(anchor), fresh.draft(anchor)
        np.testing.assert_array_equal(found.tokens, wanted.tokens)
        np.testing.assert_allclose(found.confidence, wanted.confidence, atol=BOUND)


def test_verified_rows_are_dropped_by_other_calls(
    pair: tuple[_native.Model, _native.Drafter], truth: tuple[np.ndarray, np.ndarray]
) -> None:
    tokens, _ = truth
    session = open_session(pair)
    session.prefill(tokens[:50])
    session.verify(block_at(tokens, 50, 2))
    session.prefill(tokens[50:52])
    with pytest.raises(_native.RequestError, match="0 were verified"):
        session.commit(1)
    assert next_error(session, truth) <= BOUND


@pytest.mark.parametrize("rows", [0, -1, 4])
def test_commit_refuses_rows_that_were_not_verified(pair: tuple[_native.Model, _native.Drafter], rows: int) -> None:
    session = open_session(pair)
    session.verify(np.array([3, 4, 5], np.int32))
    with pytest.raises(_native.RequestError, match="3 were verified"):
        session.commit(rows)
    session.commit(3)
    assert session.position == 3


def test_more_rows_than_the_rings_have_slack_for(pair: tuple[_native.Model, _native.Drafter]) -> None:
    session = open_session(pair)
    session.verify(np.arange(2, 18, dtype=np.int32))
    with pytest.raises(_native.RequestError, match="wanted 1 to 16"):
        session.verify(np.arange(2, 19, dtype=np.int32))
