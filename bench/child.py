"""An engine in a child process, asked by lines of JSON: ggml libraries of two projects must not meet in one."""

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any


class WorkerDied(Exception):
    """The engine's process ended without an answer."""


class Worker:
    """A process that answers each line of JSON with one.

    Attributes:
        began: what it said when it was ready.
    """

    def __init__(self, command: Sequence[str]) -> None:
        # An abort would print a backtrace into the answers.
        environment = os.environ | {"GGML_NO_BACKTRACE": "1"}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.began = self.answer()

    @property
    def vocab(self) -> int:
        """Tokens of the model's vocabulary."""
        return int(self.began["vocab"])

    def answer(self) -> dict[str, Any]:
        """The next answer; raises WorkerDied."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerDied(f"the worker ended with status {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer; raises WorkerDied."""
        assert self.process.stdin is not None
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            raise WorkerDied(f"the worker ended with status {self.process.wait()}") from None
        return self.answer()

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
