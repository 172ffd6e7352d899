"""How Python ends while threads compute."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

GENERATING = """
import threading, time
import ds4py

engine = ds4py.Engine()
begun = threading.Event()

def generate():
    for _ in engine.session(context=4096).generate("a", sampling=ds4py.Sampling(seed=1), draft="{draft}"):
        begun.set()

threading.Thread(target=generate, daemon=True).start()
begun.wait(60)
print("ending")
"""


@pytest.mark.parametrize("draft", ["off", "dspark"])
def test_a_thread_that_still_generates(draft: str) -> None:
    """The process ends at once and in peace, though the thread was in the middle of native code."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "error"}
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", GENERATING.replace("{draft}", draft)],
            env=environment,
            cwd=os.sep,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "ending\n", "")
