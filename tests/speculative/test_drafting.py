"""What a session's drafter knows of the past, whatever way the past came about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from drafter_files import DrafterFile
from drafting import (
    MASK,
    SAME,
    WINDOW,
    Draft,
    assert_same,
    draft,
    golden,
    golden_drafter,
    load,
    open_session,
    prompt,
    relative_error,
    target,
)
from gguf_tools import DRAFTER
from reference_drafter import ReferenceDrafter

from ds4py import _native
from ds4py.constants import MAX_ROWS

pytestmark = pytest.mark.on_device

CAPACITY = WINDOW + MAX_ROWS  # of the rings of features and of context keys
LENGTH = 2 * CAPACITY + 9


def junk(tokens: np.ndarray) -> np.ndarray:
    """As many ids, all of them others."""
    return np.asarray((tokens + 101) % 500 + 3, np.int32)


@cache
def fresh(length: int) -> Draft:
    """The draft after one prefill."""
    return draft(open_session(prompt(length)), prompt()[length])


def in_one_piece(session: _native.Session, end: int) -> None:
    session.prefill(prompt(end)[session.position :])


def one_by_one(session: _native.Session, end: int) -> None:
    for token in prompt(end)[session.position :]:
        session.prefill([token])


def evaluated(session: _native.Session, end: int) -> None:
    session.evaluate(prompt(end)[session.position :])


def verified(session: _native.Session, end: int) -> None:
    """Verifies of all draft lengths, of which the first rows are right and committed."""
    rng = np.random.default_rng(4)
    while session.position < end:
        rows = int(rng.integers(1, MAX_ROWS + 1))
        right = prompt(min(session.position + int(rng.integers(1, rows + 1)), end))[session.position :]
        session.verify(np.concatenate([right, junk(prompt(rows - len(right)))]))
        session.commit(len(right))


def verified_and_drafted(session: _native.Session, end: int) -> None:
    while session.position < end:
        at = session.position
        session.draft(int(prompt()[at]))
        verified(session, min(at + 3, end))


def gone_back(session: _native.Session, end: int) -> None:
    """Wrong tokens, drafted after, and taken back."""
    in_one_piece(session, end - 5)
    session.prefill(junk(prompt(9)))
    session.draft(3)
    session.rewind(end - 5)
    in_one_piece(session, end)


def gone_back_to_the_end(session: _native.Session, end: int) -> None:
    session.prefill(np.concatenate([prompt(end), junk(prompt(MAX_ROWS))]))
    session.draft(3)
    session.rewind(end)


def gone_back_far(session: _native.Session, end: int) -> None:
    """Beyond the slack of the rings, so that the positions are evaluated again."""
    session.prefill(np.concatenate([prompt(end - 5), junk(prompt(150))]))
    session.draft(3)
    session.rewind(end - 5)
    in_one_piece(session, end)


WAYS = [
    in_one_piece,
    one_by_one,
    evaluated,
    verified,
    verified_and_drafted,
    gone_back,
    gone_back_to_the_end,
    gone_back_far,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("length", [9, WINDOW, CAPACITY + 1, LENGTH])
def test_the_way_here_does_not_matter(way: Callable[[_native.Session, int], None], length: int) -> None:
    session = open_session()
    way(session, length)
    assert list(session.tokens) == list(prompt(length))
    assert_same(draft(session, prompt()[length]), fresh(length))


@pytest.mark.parametrize("way", [one_by_one, verified, evaluated], ids=lambda way: way.__name__)
@pytest.mark.parametrize("plain", [1, MAX_ROWS, MAX_ROWS + 1, WINDOW, CAPACITY, CAPACITY + 1, 90])
def test_catching_up_after_steps_without_a_draft(way: Callable[[_native.Session, int], None], plain: int) -> None:
    session = open_session(prompt(20))
    session.draft(3)
    way(session, 20 + plain)
    assert_same(draft(session, prompt()[20 + plain]), fresh(20 + plain))


def test_every_draft_of_a_long_run() -> None:
    """Cycles that accept any number of proposals, over more than a lap of the rings."""
    session, rng = open_session(prompt(CAPACITY)), np.random.default_rng(8)
    while session.position < 2 * CAPACITY + 6:
        at, accepted = session.position, int(rng.integers(0, 6))
        assert_same(draft(session, prompt()[at]), fresh(at))
        session.verify(np.concatenate([prompt()[at : at + 1 + accepted], junk(prompt(5 - accepted))]))
        session.commit(1 + accepted)


@pytest.mark.parametrize("length", [0, 5, WINDOW, LENGTH])
def test_verified_rows_that_nobody_commits(length: int) -> None:
    session = open_session(prompt(length))
    before = draft(session, 3)
    for _ in range(3):
        session.verify(junk(prompt(MAX_ROWS)))
        assert_same(draft(session, 3), before, bound=0)


@pytest.mark.parametrize("length", [0, 1, WINDOW, LENGTH])
def test_drafting_changes_nothing(length: int) -> None:
    plain, drafted = open_session(prompt(length)), open_session(prompt(length))
    first = draft(drafted, 3)
    draft(drafted, 4)
    assert_same(draft(drafted, 3), first, bound=0)
    assert list(drafted.tokens) == list(prompt(length))
    if length:
        np.testing.assert_array_equal(drafted.logits(), plain.logits())
    rows = prompt(length + 6)[length:]
    np.testing.assert_array_equal(drafted.verify(rows), plain.verify(rows))
    drafted.draft(5)
    drafted.commit(4)
    assert_same(draft(drafted, 6), draft(open_session(prompt(length + 4)), 6))


def test_an_anchor_and_its_position_both_count() -> None:
    session = open_session(prompt(50))
    one, other = draft(session, 3), draft(session, 4)
    session.rewind(49)
    assert relative_error(one.hidden, other.hidden) > 1e-2
    assert relative_error(one.hidden, draft(session, 3).hidden) > 1e-2


def test_noise_is_a_token_like_others_to_the_target() -> None:
    session = open_session(np.append(prompt(40), MASK))
    assert np.isfinite(draft(session, MASK).base).all()


@pytest.mark.parametrize("drafts_before", [False, True])
def test_a_saved_session_keeps_its_context(drafts_before: bool, tmp_path: Path) -> None:
    session = open_session(prompt(LENGTH))
    if drafts_before:
        session.draft(3)
        one_by_one(session, LENGTH + 7)
    session.save(str(tmp_path / "state"))
    restored = _native.Session.load(target(), str(tmp_path / "state"), drafter=golden_drafter())
    for anchor in (3, 4):
        assert_same(draft(restored, anchor), draft(session, anchor), bound=0)
    one_by_one(session, LENGTH + 20)
    one_by_one(restored, LENGTH + 20)
    assert_same(draft(restored, 5), draft(session, 5), bound=0)


def another_drafter(folder: Path) -> _native.Drafter:
    """One that would make something else of the saved context."""
    file = DrafterFile()
    file.tensors["fc.weight"] = file.tensors["fc.weight"][::-1].copy()
    return load(file.write(folder / "another.gguf"))


@pytest.mark.parametrize("saved_with", ["no drafter", "another drafter"])
def test_a_session_saved_without_this_drafters_context(saved_with: str, tmp_path: Path) -> None:
    """It sees the positions since the restore, and no others."""
    saving = None if saved_with == "no drafter" else another_drafter(tmp_path)
    session = _native.Session(target(), context=1024, kv_dtype="f32", drafter=saving)
    session.prefill(prompt(LENGTH))
    session.save(str(tmp_path / "state"))
    restored = _native.Session.load(target(), str(tmp_path / "state"), drafter=golden_drafter())
    reference = ReferenceDrafter.read(DRAFTER)
    for since in (0, 1, 7, WINDOW - 1, WINDOW, WINDOW + 1):
        one_by_one(restored, LENGTH + since)
        anchor, end = int(prompt()[LENGTH + since]), LENGTH + since
        block = reference.stages_of(golden("target")["dspark_features"][LENGTH:end], anchor, end)
        found = draft(restored, anchor)
        assert relative_error(found.hidden, block.hidden) <= SAME
        np.testing.assert_array_equal(found.tokens, reference.chain(block, anchor).tokens)


def test_the_last_position_of_a_context_can_be_drafted_after() -> None:
    session = _native.Session(target(), context=40, kv_dtype="f32", drafter=golden_drafter())
    session.prefill(prompt(39))
    assert_same(draft(session, prompt()[39]), fresh(39))
    session.prefill(prompt(40)[39:])
    with pytest.raises(_native.RequestError, match="0 positions left"):
        session.draft(3)


@pytest.mark.parametrize("anchor", [-1, 512])
def test_an_anchor_outside_the_vocabulary(anchor: int) -> None:
    with pytest.raises(_native.RequestError, match="not in the vocabulary"):
        open_session(prompt(5)).draft(anchor)


def test_a_session_without_a_drafter() -> None:
    session = _native.Session(target(), context=40)
    with pytest.raises(_native.RequestError, match="no drafter"):
        session.draft(3)


def test_a_trace_needs_a_draft() -> None:
    session = open_session(prompt(5))
    with pytest.raises(_native.RequestError, match="nothing has been drafted"):
        session.diagnostics.draft_trace()
