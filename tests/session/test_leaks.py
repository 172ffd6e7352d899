"""Nothing is kept of what was rejected, stopped or closed: the process does not grow."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from generating import CONTINUATION, GREEDY, PROMPT, oracle
from gguf_tools import DRAFTER, TARGET

import ds4py
from ds4py import Engine, Sampling, Session
from ds4py.speculative import Draft, ScriptedDrafter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process from /proc")


def anonymous() -> int:
    """Bytes of this process that are in memory and in no file."""
    gc.collect()
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))


def growth(work: Callable[[], None], times: int) -> int:
    """Of so many runs, after as many that may fill caches."""
    for _ in range(times):
        work()
    before = anonymous()
    for _ in range(times):
        work()
    return anonymous() - before


def rejected(session: Session) -> None:
    """With a drafter whose later proposals never stand."""
    list(session.generate(max_tokens=4, sampling=GREEDY, draft=oracle(2, 3), width=15))


def sampled(session: Session) -> None:
    list(session.generate(max_tokens=4, sampling=Sampling(seed=1), draft="dspark", width=15))


def abandoned(session: Session) -> None:
    list(islice(session.generate(sampling=Sampling(seed=1), draft="dspark", width=15), 2))


def cancelled(session: Session) -> None:
    stream = session.generate(sampling=Sampling(seed=1), draft="dspark", width=15)
    next(stream)
    session.cancel()
    with suppress(ds4py.Cancelled):
        next(stream)


def failing_draft(session: Session) -> None:
    stream = session.generate(sampling=GREEDY, draft=ScriptedDrafter(lambda history: 1 // 0), width=15)
    with suppress(ZeroDivisionError):
        list(stream)


def failing_acceptance(session: Session) -> None:
    """q has no finite mass, which shows after the verify."""
    damaged = Draft(np.array(CONTINUATION[1:4], np.int32), np.full((3, 512), np.nan, np.float32))
    stream = session.generate(sampling=Sampling(seed=1), draft=ScriptedDrafter(lambda _: damaged), width=15)
    with suppress(ds4py.RequestError):
        list(stream)


@pytest.mark.parametrize(
    "end", [rejected, sampled, abandoned, cancelled, failing_draft, failing_acceptance], ids=lambda end: end.__name__
)
def test_a_session_after_many_requests(prompted: Session, end: Callable[[Session], None]) -> None:
    def work() -> None:
        end(prompted)
        prompted.rewind(len(PROMPT))
        prompted.logits()

    assert growth(work, 50) < 300_000  # four rows of logits that are lost each time would be 400,000


def test_sessions_that_are_closed(pair: Engine) -> None:
    def work() -> None:
        with pair.session(context=64) as session:
            session.prefill(PROMPT[:20])
            session.anchor = 5
            session.verify(session.draft().tokens)
            session.commit(2, 6)

    assert growth(work, 20) < 30e6  # each takes 7 MB, which the allocator hands out and takes back in another order


def test_pairs_that_are_closed() -> None:
    def work() -> None:
        with Engine(TARGET, drafter=DRAFTER, device="cpu", threads=1):
            pass

    assert growth(work, 20) < 3e6  # each takes 0.5 MB beside its mapped files
