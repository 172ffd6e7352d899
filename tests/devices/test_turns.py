"""Calls of a remote device's sessions wait for each other; sessions elsewhere do not."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from paths import GOLDEN

from ds4py import Engine, RequestError
from ds4py.runtime.rpc_turns import taking_turns, turn

pytestmark = pytest.mark.fast

TOKENS: np.ndarray = np.load(GOLDEN / "target-golden.npz")["tokens"][:120]


def test_two_sessions_in_two_threads(remote: str) -> None:
    """Without turns their bytes would mix on the one connection, and the process would end."""
    results: dict[int, np.ndarray] = {}
    with Engine(GOLDEN / "tiny-target-f32.gguf", device=remote, threads=1) as engine:

        def run(number: int) -> None:
            with engine.session(context=256, kv_dtype="f32") as session:
                results[number] = np.concatenate([session.evaluate(TOKENS[at : at + 6]) for at in range(0, 120, 6)])

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    np.testing.assert_array_equal(results[0], results[1])


def test_one_session_in_two_threads_is_refused(remote: str) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(done: int, total: int) -> None:
        inside.set()
        leave.wait(10)

    with (
        Engine(GOLDEN / "tiny-target-f32.gguf", device=remote, threads=1) as engine,
        engine.session(context=256, kv_dtype="f32") as session,
    ):
        worker = threading.Thread(target=session.prefill, args=(TOKENS[:20],), kwargs={"progress": hold})
        worker.start()
        assert inside.wait(10)
        with pytest.raises(RequestError, match="already in a call"):
            session.logits()
        leave.set()
        worker.join(60)


def test_devices_of_this_machine_have_no_turns() -> None:
    session = object()
    assert taking_turns(session, "CUDA0") is session  # type: ignore[arg-type]
    with turn("CPU"), turn("CPU"):
        pass
