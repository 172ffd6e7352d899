"""An RPC server in a process of its own: a device whose memory this process cannot address, without a GPU."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

SERVE = """
import os, sys, threading
from ds4py import _native

def end_with_parent():
    sys.stdin.read()
    os._exit(0)

threading.Thread(target=end_with_parent, daemon=True).start()
_native.serve_rpc(sys.argv[1], "cpu", int(sys.argv[2]))
"""
START_SECONDS = 60.0


def start_server(threads: int = 1) -> tuple[subprocess.Popen[bytes], str]:
    """Serves the CPU at a free port of 127.0.0.1 until this process is gone: the server, and "rpc:127.0.0.1:PORT"."""
    endpoint = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "DS4_DEVICE": "cpu"}
    command = [sys.executable, "-c", SERVE, endpoint, str(threads)]
    theirs, _ours = os.pipe()  # ours is closed by the system, when no object of this process is left to need the server
    server = subprocess.Popen(command, env=environment, cwd=os.sep, stdin=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    _wait_for(server, endpoint)
    return server, f"rpc:{endpoint}"


@contextmanager
def rpc_server(threads: int = 1) -> Iterator[str]:
    """Keeps a server as long as the context lasts; yields the device's name."""
    server, name = start_server(threads)
    try:
        yield name
    finally:
        server.kill()
        server.wait(timeout=60)


def free_port() -> int:
    """Returns a port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(server: subprocess.Popen[bytes], endpoint: str) -> None:
    host, port = endpoint.split(":")
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended"
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"no server at {endpoint} after {START_SECONDS} s")
