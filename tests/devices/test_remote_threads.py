"""Calls of a remote device's sessions wait for each other's connection; a wait can be cancelled."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from paths import GOLDEN

from ds4py import Cancelled, Engine, RequestError, Session

TOKENS: np.ndarray = np.load(GOLDEN / "target-golden.npz")["tokens"][:120]
PATIENCE = 60.0  # seconds for what takes less than one


@pytest.fixture
def engine(remote: str) -> Iterator[Engine]:
    with Engine(GOLDEN / "tiny-target-f32.gguf", device=remote, threads=1) as engine:
        yield engine


def evaluated(engine: Engine, tokens: np.ndarray) -> np.ndarray:
    """Logits of all tokens, in many calls of sessions that begin and end."""
    rows = []
    for half in np.split(tokens, 2):
        with engine.session(context=256, kv_dtype="f32") as session:
            rows += [session.evaluate(half[at : at + 6]) for at in range(0, len(half), 6)]
    return np.concatenate(rows)


@contextmanager
def holding(session: Session) -> Iterator[None]:
    """Another thread is in a call of the session, and so on its connection."""
    inside, leave = threading.Event(), threading.Event()

    def hold(done: int, total: int) -> None:
        inside.set()
        leave.wait(PATIENCE)

    worker = threading.Thread(target=session.prefill, args=(TOKENS[:20],), kwargs={"progress": hold})
    worker.start()
    try:
        assert inside.wait(PATIENCE)
        yield
    finally:
        leave.set()
        worker.join(PATIENCE)
    assert not worker.is_alive()


def soon(action: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.3, action)
    timer.start()
    return timer


def test_two_sessions_in_two_threads(engine: Engine) -> None:
    """Without a lock their bytes would mix on the one connection, and the process would end."""
    inputs = [TOKENS, TOKENS[::-1].copy()]
    wanted = [evaluated(engine, tokens) for tokens in inputs]
    found: dict[int, np.ndarray] = {}

    def run(number: int) -> None:
        found[number] = evaluated(engine, inputs[number])

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    for number in range(2):
        np.testing.assert_array_equal(found[number], wanted[number])


def test_one_session_in_two_threads_is_refused(engine: Engine) -> None:
    with (
        engine.session(context=256, kv_dtype="f32") as session,
        holding(session),
        pytest.raises(RequestError, match="already in a call"),
    ):
        session.logits()


def test_a_wait_is_cancelled_by_another_thread(engine: Engine) -> None:
    with engine.session(context=256) as first, engine.session(context=256) as second:
        second.prefill(TOKENS[:5])
        with holding(first):
            soon(second.cancel)
            started = time.monotonic()
            with pytest.raises(Cancelled):
                second.prefill(TOKENS[:5])
            assert time.monotonic() - started < PATIENCE / 2
        second.prefill(TOKENS[5:10])
        assert second.position == 10


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_wait_is_ended_by_ctrl_c(engine: Engine) -> None:
    with engine.session(context=256) as first, engine.session(context=256) as second:
        with holding(first):
            soon(lambda: os.kill(os.getpid(), signal.SIGINT))
            with pytest.raises(KeyboardInterrupt):
                second.prefill(TOKENS[:5])
        second.prefill(TOKENS[:5])
        assert second.position == 5


def test_the_end_of_a_session_waits_for_its_connection(engine: Engine) -> None:
    """And lets other threads run meanwhile: with the interpreter's lock held, nobody could end the other call."""
    with engine.session(context=256) as first:
        second = engine.session(context=256)
        inside, done = threading.Event(), threading.Event()

        def end() -> None:
            inside.set()
            second.close()
            done.set()

        with holding(first):
            threading.Thread(target=end, daemon=True).start()
            assert inside.wait(PATIENCE)
            assert not done.wait(0.2)
        assert done.wait(PATIENCE)
