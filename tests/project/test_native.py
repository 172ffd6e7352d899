"""Builds tests/native and runs each of its cases: ops, graph inputs and state against plain double loops. Then tests/c,
a C program on the C library, and the bench that compares such a program with Python.

The build goes to build/native-tests. DS4_GGML_DIR names a local ggml tree; without it CMake fetches the pinned one.
DS4_NATIVE_TESTS names a program that is built already (-DDS4_TESTS=ON).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gguf_tools import DRAFTER, TARGET
from paths import ROOT

SOURCES = ROOT / "tests" / "native"
BUILD = ROOT / "build" / "native-tests"
BUILD_SECONDS = 840.0
TARGETS = ("ds4_tests", "ds4_c_test", "ds4_c_threads_test", "ds4_loop")


def cases_in_sources() -> list[str]:
    """The names, known before anything is built."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.cpp"))]
    return [name for text in texts for name in re.findall(r"^CASE\((\w+)\)", text, re.MULTILINE)]


def tool(name: str) -> str:
    """The tool that pip put beside this Python, else the one on the path."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if not found:
        pytest.fail(f"{name} is not installed; it comes with the test extra: pip install 'ds4py[test]'", pytrace=False)
    return found


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    if done.returncode:
        tail = (done.stdout + done.stderr)[-8000:]
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{tail}", pytrace=False)


@pytest.fixture(scope="module")
def binary() -> Path:
    """The test program, built when its sources are newer."""
    if built := os.environ.get("DS4_NATIVE_TESTS"):
        return Path(built)
    cmake = tool("cmake")
    options = {
        "DS4_TESTS": "ON",
        "DS4_BINDINGS": "OFF",
        "CMAKE_MAKE_PROGRAM": tool("ninja"),
        "Python_EXECUTABLE": sys.executable,
        "DS4_GGML_DIR": os.environ.get("DS4_GGML_DIR", ""),
    }
    defines = [f"-D{name}={value}" for name, value in options.items()]
    run(cmake, "-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *defines)
    run(cmake, "--build", str(BUILD), "--target", *TARGETS, "--parallel", str(os.cpu_count() or 1))
    return BUILD / "tests" / "native" / ("ds4_tests.exe" if os.name == "nt" else "ds4_tests")


@pytest.mark.timeout(900)  # it may be the one that builds
def test_every_case_is_run(binary: Path) -> None:
    listed = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert sorted(listed) == sorted(cases_in_sources())


def test_an_unknown_case_is_not_a_success(binary: Path) -> None:
    done = subprocess.run([binary, "no_such_case"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no_such_case" in done.stdout


@pytest.mark.parametrize("case", cases_in_sources())
def test_case(binary: Path, case: str) -> None:
    done = subprocess.run([binary, case], capture_output=True, text=True, timeout=240)
    if done.returncode:
        pytest.fail(f"exit {done.returncode}\n{done.stdout}{done.stderr}", pytrace=False)


def test_a_c_program_drafts_verifies_and_commits(binary: Path, tmp_path: Path) -> None:
    program = binary.parents[1] / "c" / ("ds4_c_test" + binary.suffix)
    done = subprocess.run([program, TARGET, DRAFTER, tmp_path], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr


def test_two_threads_of_a_c_program_share_a_connection(binary: Path, remote: str) -> None:
    """Without a lock their bytes would mix on the one connection, and the process would end or hang."""
    program = binary.parents[1] / "c" / "ds4_c_threads_test"
    done = subprocess.run([program, TARGET, remote], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr


def test_the_bench_of_pythons_overhead_generates_the_same_on_both_sides(binary: Path) -> None:
    """It refuses other tokens or cycles, and prints a line for each draft length and temperature."""
    program = binary.parents[2] / "bench" / "native" / ("ds4_loop" + binary.suffix)
    command = [sys.executable, ROOT / "bench" / "overhead.py", "--loop", program, "--rounds", "2", "-n", "12"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[:3] for line in done.stdout.splitlines()[-4:]]
    assert rows == [["0", "0", "12"], ["0.7", "0", "12"], ["0", "5", "12"], ["0.7", "5", "12"]]


def test_the_bench_of_pythons_overhead_says_what_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "bench" / "overhead.py", "--loop", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "none: No such file or directory: build it (see --help), or name it with --loop" in done.stderr
