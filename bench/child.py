"""Runs an engine in a child process that answers lines of JSON.

The ggml libraries of two projects cannot be loaded into one process.
"""

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any


class WorkerDied(Exception):
    """The process of an engine ended without an answer."""


class Worker:
    """A process that answers each line of JSON with a line of JSON.

    Attributes:
        began: the line that the process wrote when it was ready.
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
        """The number of tokens in the model's vocabulary."""
        return int(self.began["vocab"])

    def answer(self) -> dict[str, Any]:
        """Returns the next answer. Raises WorkerDied."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise WorkerDied(f"the worker ended with status {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and returns its answer. Raises WorkerDied."""
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
