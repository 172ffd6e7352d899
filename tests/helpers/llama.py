"""Runs llama.cpp in a process of its own, because it brings its own ggml, whose libraries have the names of ours."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

UNSUITABLE = 77
"""The exit code of a program that finds llama.cpp lacking what it needs, and says on its last line what."""

installed = pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None, reason="llama-cpp-python is not installed: nothing to compare with"
)


def run(*command: object) -> str:
    """Returns what Python prints when given these arguments; its errors fail the test with llama.cpp's own words."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=300,
        cwd=os.sep,  # nothing that it imports lies there
    )
    if done.returncode == UNSUITABLE:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
