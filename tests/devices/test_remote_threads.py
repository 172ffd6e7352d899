"""Calls of a remote device's sessions wait for each other's connection; a wait can be cancelled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
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
            started = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                second.prefill(TOKENS[:5])
            assert time.monotonic() - started < PATIENCE / 2
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


DAEMONS = """
import sys, threading, time
from ds4py import Engine

engine = Engine(sys.argv[1], device=sys.argv[2], threads=1)

def open_and_close():
    while True:
        engine.session(context=64).close()

for _ in range(2):
    threading.Thread(target=open_and_close, daemon=True).start()
time.sleep(0.5)
"""


@pytest.mark.parametrize("where", ["cpu", "remote"])
def test_python_ends_while_daemon_threads_close_sessions(request: pytest.FixtureRequest, where: str) -> None:
    device = request.getfixturevalue("remote") if where == "remote" else where
    command = [sys.executable, "-c", DAEMONS, str(GOLDEN / "tiny-target-f32.gguf"), device]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for _ in range(3):
        done = subprocess.run(command, env=environment, cwd=os.sep, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr


SIGNALS = """
import os, signal, sys, threading, time
from ds4py import Engine

with Engine(sys.argv[1], device=sys.argv[2], threads=1) as engine:
    sessions = [engine.session(context=64) for _ in range(8)]
    signal.signal(signal.SIGINT, lambda *_: None)  # from here on, system calls are interrupted again

    def send():
        while sessions:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.0005)

    thread = threading.Thread(target=send)
    thread.start()
    while sessions:
        sessions.pop().close()
    thread.join()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_signals_do_not_interrupt_the_end_of_a_session(remote: str) -> None:
    """ggml ends the process where a system call on its connection is interrupted."""
    command = [sys.executable, "-c", SIGNALS, str(GOLDEN / "tiny-target-f32.gguf"), remote]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, env=environment, cwd=os.sep, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
