"""A session's life: going back, stopping, saving, several at once, wrong calls."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from device import ROUNDING
from paths import GOLDEN

import ds4py
from ds4py import Engine, Sampling, Session

pytestmark = pytest.mark.on_device

GREEDY = Sampling(temperature=0)
TOKENS: np.ndarray = np.load(GOLDEN / "target-golden.npz")["tokens"]
BOUND = 2e-5 * ROUNDING  # the same numbers by another chunking


@pytest.fixture(scope="module")
def plain(tiny: Engine) -> np.ndarray:
    """Logits of every position, never gone back from."""
    with tiny.session(context=1024, kv_dtype="f32") as session:
        return session.evaluate(TOKENS)


def fresh(engine: Engine, context: int = 1024) -> Session:
    return engine.session(context=context, kv_dtype="f32")


def other(tokens: np.ndarray) -> np.ndarray:
    """Ids of the same count that are all different: what a rejected draft may be."""
    return (tokens + 101) % 500 + 3


@pytest.mark.parametrize("rows", [1, 5, 6, 16])
@pytest.mark.parametrize("near", [32, 47, 64, 94, 128, 141, 256, 384])
def test_rejected_rows_leave_no_trace(tiny: Engine, plain: np.ndarray, rows: int, near: int) -> None:
    """Around window wraps (32, 47 rows a ring) and block ends of both ratios: write, go back, continue."""
    with fresh(tiny) as session:
        start = near - rows
        session.prefill(TOKENS[:start])
        for frontier in range(start, near + 3):
            session.evaluate(other(TOKENS[frontier : frontier + rows]))
            session.rewind(frontier)
            got = session.evaluate(TOKENS[frontier : frontier + 1])
            assert np.abs(got[0] - plain[frontier]).max() <= BOUND


def test_every_prefix_of_a_verify_can_be_kept(tiny: Engine, plain: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    with fresh(tiny) as session:
        session.prefill(TOKENS[:20])
        while session.position < 420:
            at, kept = session.position, int(rng.integers(0, 7))
            session.evaluate(np.concatenate([TOKENS[at : at + kept], other(TOKENS[at + kept : at + 6])]))
            session.rewind(at + kept)
            if kept:
                assert np.abs(session.logits() - plain[at + kept - 1]).max() <= BOUND


@pytest.mark.parametrize("target", [1, 37, 128, 300, 599])
def test_rewind_beyond_the_slack(tiny: Engine, plain: np.ndarray, target: int) -> None:
    with fresh(tiny) as session:
        session.prefill(TOKENS[:200])
        session.prefill(other(TOKENS[200:700]))
        session.rewind(200)
        session.prefill(TOKENS[200:650])
        session.rewind(target)
        assert session.position == target
        assert session.tokens == list(TOKENS[:target])
        rest = session.evaluate(TOKENS[target : target + 40])
        assert np.abs(rest - plain[target : target + 40]).max() <= BOUND


def test_logits_after_a_rewind(tiny: Engine, plain: np.ndarray) -> None:
    with fresh(tiny) as session:
        session.prefill(TOKENS[:300])
        session.rewind(290)
        assert np.abs(session.logits() - plain[289]).max() <= BOUND
        session.rewind(0)
        with pytest.raises(ds4py.RequestError, match="prefill a prompt first"):
            session.logits()


def test_two_sessions_interleaved(tiny: Engine, plain: np.ndarray) -> None:
    with fresh(tiny) as a, fresh(tiny) as b:
        for at in range(0, 300, 30):
            got = a.evaluate(TOKENS[at : at + 30])
            b.evaluate(other(TOKENS[at : at + 30]))
            assert np.abs(got - plain[at : at + 30]).max() <= BOUND


def test_sessions_in_parallel_threads(tiny: Engine, plain: np.ndarray) -> None:
    errors: list[float] = []

    def run() -> None:
        with fresh(tiny) as session:
            errors.append(float(np.abs(session.evaluate(TOKENS[:300]) - plain[:300]).max()))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(errors) == 3
    assert max(errors) <= BOUND


def test_one_session_in_two_threads_is_refused(tiny: Engine) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(done: int, total: int) -> None:
        inside.set()
        leave.wait(10)

    with fresh(tiny) as session:
        worker = threading.Thread(target=session.prefill, args=(TOKENS[:20],), kwargs={"progress": hold})
        worker.start()
        assert inside.wait(10)
        for call in (session.logits, lambda: session.prefill([1]), lambda: session.rewind(0), lambda: session.tokens):
            with pytest.raises(ds4py.RequestError, match="already in a call"):
                call()
        leave.set()
        worker.join(60)
        assert session.tokens == list(TOKENS[:20])


def meanwhile(act: Callable[[], object], seen: list[int]) -> Callable[[int, int], None]:
    """A function for progress: another thread acts while a prompt is evaluated, at its middle at the latest."""
    thread = threading.Thread(target=act)

    def progress(done: int, total: int) -> None:
        seen.append(done)
        if thread.ident is None:
            thread.start()
        elif 2 * done > total:
            thread.join(60)

    return progress


def test_cancel_puts_the_state_back(tiny: Engine, plain: np.ndarray) -> None:
    with tiny.session(context=8192, kv_dtype="f32") as session:
        session.prefill(TOKENS[:150])
        seen: list[int] = []
        with pytest.raises(ds4py.Cancelled):
            session.prefill(np.tile(other(TOKENS), 11), progress=meanwhile(session.cancel, seen))
        assert seen[-1] < 11 * len(TOKENS)
        assert session.tokens == list(TOKENS[:150])
        assert np.abs(session.logits() - plain[149]).max() <= BOUND
        assert np.abs(session.evaluate(TOKENS[150:300]) - plain[150:300]).max() <= BOUND


def test_ctrl_c_in_a_prompt(tiny: Engine, plain: np.ndarray) -> None:
    with tiny.session(context=8192, kv_dtype="f32") as session:
        session.prefill(TOKENS[:150])
        interrupt = meanwhile(lambda: os.kill(os.getpid(), signal.SIGINT), [])
        with pytest.raises(KeyboardInterrupt):
            session.prefill(np.tile(other(TOKENS), 11), progress=interrupt)
        assert session.position == 150
        assert np.abs(session.evaluate(TOKENS[150:200]) - plain[150:200]).max() <= BOUND


def test_an_error_in_progress_puts_the_state_back(tiny: Engine, plain: np.ndarray) -> None:
    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError(f"{done} of {total}")

    with fresh(tiny) as session:
        for more in (TOKENS[:5], TOKENS[:600]):
            with pytest.raises(ZeroDivisionError, match="of"):
                session.prefill(more, progress=fail)
            assert session.position == 0
        assert np.abs(session.evaluate(TOKENS[:50]) - plain[:50]).max() <= BOUND


def test_a_failed_step_leaves_no_checkpoint_behind(tiny: Engine) -> None:
    """A checkpoint is taken each 1024 positions; one from a step that was undone holds other tokens."""

    def fail(done: int, total: int) -> None:
        raise ZeroDivisionError

    tokens = np.tile(TOKENS, 2)[:1100]
    with fresh(tiny, 2048) as session, fresh(tiny, 2048) as wanted:
        session.prefill(tokens[:1020])
        with pytest.raises(ZeroDivisionError):
            session.prefill(other(tokens[1020:1030]), progress=fail)
        for at in range(1020, 1084, 16):
            session.prefill(tokens[at : at + 16])
        session.rewind(1032)
        wanted.prefill(tokens[:1032])
        assert np.abs(session.evaluate(tokens[1032:1040]) - wanted.evaluate(tokens[1032:1040])).max() <= BOUND


def test_progress_counts_the_prompt(tiny: Engine) -> None:
    seen: list[tuple[int, int]] = []
    with tiny.session(context=2048) as session:
        session.prefill(np.tile(TOKENS, 2)[:1200], progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert len(seen) >= 3
    assert seen[-1] == (1200, 1200)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "no tokens"),
        ([1, 512], r"token 512 at index 1 is not in the vocabulary of 512"),
        ([-1], "wanted token ids"),
        ([1.5], "wanted token ids"),
        ([2**40], "wanted token ids"),
        ([[1, 2]], "2 dimensions"),
        ([3] * 65, "65 tokens do not fit: the context of 64 has 64 positions left"),
    ],
)
def test_wrong_tokens_change_nothing(tiny: Engine, tokens: list[int], message: str) -> None:
    with tiny.session(context=64) as session:
        with pytest.raises(ds4py.RequestError, match=message):
            session.evaluate(tokens)
        assert session.position == 0


@pytest.mark.parametrize("context", [0, -5, 8193])
def test_wrong_context(tiny: Engine, context: int) -> None:
    with pytest.raises(ds4py.RequestError, match="wanted 1 to 8192"):
        tiny.session(context=context)


def test_wrong_options(tiny: Engine) -> None:
    with pytest.raises(ds4py.RequestError, match="wanted 'f16' or 'f32'"):
        tiny.session(kv_dtype="q8")  # type: ignore[arg-type]
    with pytest.raises(ds4py.RequestError, match="threads is 0"):
        Engine(GOLDEN / "tiny-target-f32.gguf", threads=0)
    with pytest.raises(ds4py.RequestError, match="'cuda:9' is not here; this build offers"):
        Engine(GOLDEN / "tiny-target-f32.gguf", device="cuda:9")


@pytest.mark.parametrize("damage", ["cut", "flip", "header", "foreign"])
def test_damaged_saves_are_refused(tiny: Engine, hard: Engine, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "state"
    with (hard if damage == "foreign" else tiny).session(context=256) as session:
        session.prefill(TOKENS[:150])
        session.save(path)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        data = data[:-100]
    if damage == "flip":
        data[len(data) // 2] ^= 1
    if damage == "header":
        data[24] ^= 1
    path.write_bytes(data)
    with pytest.raises(ds4py.FormatError, match=str(path)):
        tiny.load_session(path)


def test_save_to_a_folder_that_is_not_there(tiny: Engine, tmp_path: Path) -> None:
    with tiny.session(context=64) as session:
        session.prefill([1, 2])
        with pytest.raises(ds4py.Error, match="cannot write"):
            session.save(tmp_path / "no" / "state")
    assert list(tmp_path.iterdir()) == []


def test_closed_things_say_so(tiny: Engine) -> None:
    session = tiny.session(context=64)
    session.close()
    with pytest.raises(ds4py.RequestError, match="session is closed"):
        session.prefill([1])
    engine = Engine(GOLDEN / "tiny-target-f32.gguf")
    engine.close()
    with pytest.raises(ds4py.RequestError, match="engine is closed"):
        engine.session()
