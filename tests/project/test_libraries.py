"""A library of the system that is missing when the package is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ds4py
from ds4py.libraries import ADVICE, explain

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("library", "fix"),
    [
        ("libcuda.so.1", "driver"),
        ("libamdhip64.so.7", "ROCm"),
        ("libvulkan.so.1", "loader"),
        ("libcudart.so.12", "CUDA"),
    ],
)
def test_says_what_to_do(library: str, fix: str) -> None:
    failure = f"{library}: cannot open shared object file: No such file or directory"
    said = explain(ImportError(failure))
    assert said.startswith(failure) and fix in said and "without that backend" in said


def test_other_failures_stay_as_they_are() -> None:
    assert explain(ImportError("undefined symbol: x")) == "undefined symbol: x"


def test_the_import_says_it(tmp_path: Path) -> None:
    """A package whose native module fails as one does whose libcuda.so.1 is missing."""
    package = tmp_path / "ds4py"
    package.mkdir()
    for name in ("__init__.py", "libraries.py"):
        (package / name).write_text((Path(ds4py.__file__).parent / name).read_text())
    (package / "_native.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    environment = {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import ds4py"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        timeout=60,
    )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: libcuda.so.1") and ADVICE["libcuda.so"][3:] in last
