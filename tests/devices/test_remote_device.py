"""A model on an RPC server's device, and what is said when there is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from paths import GOLDEN
from rpc_server import free_port

from ds4py import Engine, Sampling
from ds4py.errors import BackendError, RequestError

F32_BOUND = 2e-4  # of the generic operations on the CPU, test_golden.py


def open_pair(device: str) -> Engine:
    target, drafter = GOLDEN / "tiny-target-f32.gguf", GOLDEN / "tiny-drafter-f32.gguf"
    return Engine(target, drafter=drafter, device=device, threads=1)


def test_golden_logits(remote: str) -> None:
    file = np.load(GOLDEN / "target-golden.npz")
    with open_pair(remote) as engine, engine.session(context=1024, kv_dtype="f32") as session:
        assert engine.device == remote
        logits = session.evaluate(file["tokens"])
    assert np.abs(logits[file["positions"]] - file["logits"]).max() <= F32_BOUND
    np.testing.assert_array_equal(logits.argmax(1), file["argmax"])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafted_text_is_that_of_the_cpu(remote: str, pair: Engine, temperature: float) -> None:
    """Sampled drafts draw on the CPU, by nodes that no server can compute."""
    prompt = np.load(GOLDEN / "target-golden.npz")["tokens"][:70]
    texts = []
    with open_pair(remote) as engine:
        for each in (pair, engine):
            with each.session(context=1024, kv_dtype="f32") as session:
                sampling = Sampling(temperature=temperature, seed=3)
                pieces = session.generate(prompt, max_tokens=40, width=3, draft="dspark", sampling=sampling)
                texts.append([token for piece in pieces for token in piece.tokens])
    assert texts[0] == texts[1]


def test_the_environment_names_the_automatic_device(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DS4_DEVICE", remote)
    with open_pair("auto") as engine:
        assert engine.device == remote


def test_nobody_listens() -> None:
    port = free_port()
    with pytest.raises(BackendError, match=f"127.0.0.1:{port}: Connection refused: start a server there"):
        open_pair(f"rpc:127.0.0.1:{port}")


@pytest.mark.parametrize("name", ["rpc:", "rpc:here", "rpc::50052", "rpc:here:0", "rpc:here:70000", "rpc:here:5x"])
def test_names_that_are_no_address(name: str) -> None:
    with pytest.raises(RequestError, match="not the address of an RPC server, wanted HOST:PORT"):
        open_pair(name)


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """Something at a port that is no server: it sends `answer` and hangs up; None says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            server.settimeout(60)
            client, _ = server.accept()
            with client:
                client.settimeout(60)
                client.recv(33)
                if answer is None:
                    client.recv(1)  # until the other side has had enough
                else:
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"rpc:127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "hung up instead of answering"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak ggml's RPC protocol"),
        (bytes([28, 0, 0, 0, 0, 0, 0, 0, 99, 7, 0]) + bytes(25), "speaks version 99.7 of the protocol"),
        (None, "a server serves one process at a time"),
    ],
)
def test_something_else_answers(answer: bytes | None, said: str) -> None:
    with listener(answer) as name, pytest.raises(BackendError, match=said):
        open_pair(name)


def test_a_server_that_goes_leaves_room_for_another_process(remote: str) -> None:
    """Closing the engine ends the connection, on which the server answers nobody else."""
    with open_pair(remote):
        pass
    program = f"from ds4py import Engine; Engine({str(GOLDEN / 'tiny-target-f32.gguf')!r}, device={remote!r})"
    subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, cwd="/", env={"PYTHONPATH": ":".join(sys.path)}
    )
