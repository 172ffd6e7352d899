"""`ds4py serve` as a process of its own, with the embedded pair."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import httpx
import openai
import pytest
from reading import read_until
from serving import until

ENVIRONMENT = {**os.environ, "PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"}


@contextmanager
def serve(*flags: str) -> Iterator[subprocess.Popen[str]]:
    """A process that serves, ended with the context."""
    command = [sys.executable, "-m", "ds4py", "serve", *flags]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Elsewhere than in the source tree, whose ds4py has no native module.
    with subprocess.Popen(command, **pipes, cwd=gettempdir(), env=ENVIRONMENT) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


def url_of(process: subprocess.Popen[str]) -> str:
    """Where it is, once it is ready."""
    assert process.stderr is not None
    said = read_until(process.stderr.fileno(), rb"ready: http://\S+\s")
    return re.findall(r"ready: (http://\S+)", said.decode())[0]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_life(how: signal.Signals) -> None:
    with serve("--port", "0", "--alias", "tiny", "--width", "2", "--parallel", "5") as process:
        url = url_of(process)
        assert url.startswith("http://127.0.0.1:")
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=60)
        answer = client.completions.create(model="tiny", prompt="def quicksort(", max_tokens=8, temperature=0)
        assert answer.usage and answer.usage.completion_tokens == 8
        running = threading.Thread(target=lambda: httpx.post(url + "/v1/completions", json={"prompt": "x"}, timeout=60))
        running.start()
        until(lambda: "ds4py_running 1.0" in httpx.get(url + "/metrics").text)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        running.join(60)
    assert process.returncode == 0
    assert out == ""
    assert "Traceback" not in err and "Warning" not in err and "ERROR" not in err


def test_a_prompt_outlives_the_process(tmp_path: Path) -> None:
    def ask() -> dict[str, Any]:
        with serve("--port", "0", "--cache-dir", str(tmp_path), "--draft", "off") as process:
            body = {"prompt": "def add(a, b):\n    " * 20, "max_tokens": 8, "temperature": 0}
            answer = httpx.post(url_of(process) + "/v1/completions", json=body, timeout=60).json()
            process.terminate()
            process.communicate(timeout=60)
        assert process.returncode == 0
        return answer  # type: ignore[no-any-return]

    first, second = ask(), ask()
    cached = [each["usage"]["prompt_tokens_details"]["cached_tokens"] for each in (first, second)]
    assert cached[0] < 10 and cached[1] > first["usage"]["prompt_tokens"] - 10
    assert first["choices"] == second["choices"]


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with serve("--port", str(other.getsockname()[1])) as process:
            _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search(r"^ds4py: error: cannot listen on 127.0.0.1:\d+: the port is taken", err, re.MULTILINE)


def test_a_model_that_is_none() -> None:
    with serve("--port", "0", "-m", __file__) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert err.splitlines()[-1].startswith("ds4py: error: ")


@pytest.mark.parametrize(
    ("flag", "name", "code", "words"),
    [
        ("-m", "missing.gguf", 1, r"missing.gguf: No such file or directory"),
        ("-md", "missing.gguf", 1, r"missing.gguf: No such file or directory"),
        ("--cache-dir", "file/folder", 2, r"\(cache_dir\), .*folder: Not a directory: name a folder"),
    ],
)
def test_paths_are_looked_at_before_it_listens(tmp_path: Path, flag: str, name: str, code: int, words: str) -> None:
    (tmp_path / "file").touch()
    with serve("--port", "0", flag, str(tmp_path / name)) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert re.fullmatch(f"ds4py: error: .*{words}.*\n", err)


def test_a_context_beyond_the_models() -> None:
    with serve("--port", "0", "-c", "9999999") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "9999999" in err.splitlines()[-1]


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ds4py.cli import main

    for name in [name for name in sys.modules if name.startswith(("ds4py.server.", "fastapi", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve"]) == 2
    assert "serve needs uvicorn: pip install 'ds4py[server]'" in capsys.readouterr().err


def test_fewer_sessions_than_answers(capsys: pytest.CaptureFixture[str]) -> None:
    from ds4py.cli import main

    assert main(["serve", "--parallel", "3", "--sessions", "2"]) == 2
    assert "--sessions 2 is less than --parallel 3" in capsys.readouterr().err


def test_an_empty_key(capsys: pytest.CaptureFixture[str]) -> None:
    from ds4py.cli import main

    assert main(["serve", "--api-key", ""]) == 2
    assert "--api-key: the key is empty" in capsys.readouterr().err
