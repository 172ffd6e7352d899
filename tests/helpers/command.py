"""Runs the command line as a user does, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Protocol

COMMAND = [sys.executable, "-m", "ds4py"]
SECONDS = 120


class Cli(Protocol):
    """Runs `ds4py ARGS`; standard input is `text`, by default nothing (not a terminal)."""

    def __call__(self, *args: object, text: str | bytes = "") -> subprocess.CompletedProcess[str]: ...


def cli_in(folder: Path) -> Cli:
    """Returns what runs it in a folder away from the source tree, whose `ds4py` folder has no native module."""

    def run(*args: object, text: str | bytes = "") -> subprocess.CompletedProcess[str]:
        data = text.encode() if isinstance(text, str) else text
        done = subprocess.run([*COMMAND, *map(str, args)], input=data, capture_output=True, cwd=folder, timeout=SECONDS)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
