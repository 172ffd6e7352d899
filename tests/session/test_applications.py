"""What applications lean on: one user of a session at a time, nothing pickled, quiet ends, and examples that run."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from generating import CONTINUATION, GREEDY, ids_of
from paths import ROOT
from serving import live

import ds4py
from ds4py import Engine, Session
from ds4py.runtime.exclusive import Exclusive

EXAMPLES = ROOT / "examples"


def run(*arguments: str | Path, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=EXAMPLES, input=text, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_two_generations_in_one_session_are_refused(prompted: Session) -> None:
    first = prompted.generate(sampling=GREEDY, draft="off")
    next(first)
    second = prompted.generate(sampling=GREEDY, draft="off")
    next(second)
    with pytest.raises(ds4py.RequestError, match=r"went on elsewhere .* end one generation before"):
        next(first)
    assert ids_of([next(second) for _ in range(3)]) == CONTINUATION[2:5]


def test_a_second_thread_between_native_calls_is_refused(prompted: Session) -> None:
    """While a drafter thinks, no native call runs; the session is in use all the same."""
    found: list[BaseException] = []

    class Slow:
        name = "slow"

        def propose(self, session: Session, request: object, width: int) -> None:
            for call in (lambda: session.prefill([5]), lambda: session.rewind(0), lambda: session.commit(0, 1)):
                thread = threading.Thread(target=self.attempt, args=(call,))
                thread.start()
                thread.join(60)

        def attempt(self, call: object) -> None:
            with pytest.raises(ds4py.RequestError, match="already in a call") as caught:
                call()  # type: ignore[operator]
            found.append(caught.value)

    assert ids_of(list(prompted.generate(max_tokens=3, sampling=GREEDY, draft=Slow(), width=1))) == CONTINUATION[:3]
    assert len(found) == 3


def test_one_thread_may_enter_again() -> None:
    held = Exclusive()
    with held, held:
        pass


def test_nothing_is_pickled(tiny: Engine) -> None:
    with tiny.session(context=64) as session:
        for thing in (tiny, session, tiny.complete([1, 2])):
            for attempt in (pickle.dumps, copy.copy):
                with pytest.raises(TypeError, match="open an Engine in each process"):
                    attempt(thing)


LEFT_OPEN = """
import asyncio, logging
import ds4py
assert isinstance(logging.getLogger("ds4py").handlers[0], logging.NullHandler)
engine = ds4py.Engine()
stream = engine.complete("def f(", max_tokens=50)
next(stream)
async def some():
    other = engine.complete("def g(", max_tokens=50)
    return await anext(other), other
left = asyncio.run(some())
"""


def test_what_is_left_open_ends_quietly() -> None:
    """No warnings, no exceptions from destructors, and no thread that keeps the process."""
    assert run("-W", "error", "-X", "dev", "-c", LEFT_OPEN) == ""


@pytest.mark.parametrize("name", ["custom_width_policy", "custom_drafter"])
def test_examples_run(name: str) -> None:
    assert "tokens a cycle" in run(EXAMPLES / f"{name}.py")


def test_the_chat_example_answers_and_reuses() -> None:
    out = run(EXAMPLES / "chat_20_lines.py", text="Write a JSON object.\nAgain.\n\n")
    assert out.count("prompt_tokens=") == 2
    assert "cached_tokens=0" in out


def test_the_client_example_runs_against_a_server() -> None:
    pytest.importorskip("openai")
    with Engine() as engine, live(engine) as server:
        assert run(EXAMPLES / "openai_client.py", f"{server.url}/v1").strip()
