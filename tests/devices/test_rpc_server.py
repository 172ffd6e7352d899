"""`ds4py rpc-server`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from reading import read_some
from rpc_server import free_port, start_server

from ds4py import Engine, cli
from ds4py.cli.rpc_server import is_loopback


def test_serves_a_device_until_it_is_interrupted() -> None:
    port = free_port()
    command = [sys.executable, "-m", "ds4py", "rpc-server", "-p", str(port), "--device", "cpu", "-t", "1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    server = subprocess.Popen(command, env=environment, cwd=os.sep, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(port)
        with Engine(device=f"rpc:127.0.0.1:{port}") as engine, engine.session(context=64) as session:
            assert session.evaluate([1, 2, 3]).shape == (3, engine.hyperparameters.vocab)
            assert engine.device == f"rpc:127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        _, messages = server.communicate(timeout=60)
    assert server.returncode == -signal.SIGINT
    assert f"--device rpc:127.0.0.1:{port}" in messages and "WARNING" not in messages


def test_a_server_that_is_gone() -> None:
    """One line says so, and the exit code; no backtrace, and nothing in the text."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    server, name = start_server()
    command = [sys.executable, "-m", "ds4py", "generate", "-q", "--device", name, "--prompt-ids", "1,2,3", "-n", "-1"]
    process = subprocess.Popen(
        [*command, "-c", "4096", "--seed", "1"],
        env=environment,
        cwd=os.sep,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None and read_some(process.stdout.fileno())
        server.kill()
        text, messages = process.communicate(timeout=60)
    finally:
        process.kill()
        server.kill()
        server.wait(timeout=60)
    assert process.returncode == 1
    last = messages.splitlines()[-1]
    assert last.startswith("ds4py: error: ggml cannot go on: ggml-rpc.cpp:") and "start it again" in last
    assert "gdb" not in text + messages and "#0" not in text


def wait_for(port: int) -> None:
    """Until somebody listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"nobody listens at {port}")


def test_a_port_that_is_taken(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert cli.main(["rpc-server", "-p", str(port), "--device", "cpu"]) == 1
    assert f"{port}" in capfd.readouterr().err


def test_a_device_that_is_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rpc-server", "-p", str(free_port()), "--device", "cuda:3"]) == 2
    assert "cuda:3" in capsys.readouterr().err


def test_warns_of_addresses_that_others_reach(capsys: pytest.CaptureFixture[str]) -> None:
    """Of an address that is none of this machine's, which cannot be listened at."""
    assert cli.main(["rpc-server", "-H", "203.0.113.1", "-p", str(free_port()), "--device", "cpu"]) == 1
    assert "WARNING: whoever reaches 203.0.113.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.3.2.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("box", False)],
)
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback
