"""Clients that leave, that do not read, and that ask at once."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from fake_engine import FakeEngine
from serving import Live, live, until

from ds4py.chat.reply import Content

CHAT = "/v1/chat/completions"
LONG = tuple(Content(f"{i} ") for i in range(10_000))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def server(engine: FakeEngine) -> Iterator[Live]:
    with live(engine, parallel=2, queue=8, stalled_seconds=0.3) as running:
        yield running


def ask(server: Live, *, stream: bool, client: str = "127.0.0.1") -> socket.socket:
    """Sends a request, and leaves the answer to the caller."""
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": stream})
    connection = socket.create_connection(server.url.removeprefix("http://").split(":"), 10)  # type: ignore[arg-type]
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-Forwarded-For: {client}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return connection


@pytest.mark.parametrize("stream", [False, True])
class TestLeaving:
    def test_during_the_prompt(self, server: Live, engine: FakeEngine, stream: bool) -> None:
        engine.prefill.clear()
        connection = ask(server, stream=stream)
        until(lambda: engine.running)
        connection.close()
        until(lambda: not engine.running and server.idle)
        until(lambda: server.metric("requests_total", endpoint=CHAT, status="499") == 1)

    def test_during_the_answer(self, server: Live, engine: FakeEngine, stream: bool) -> None:
        engine.parts, engine.delay = LONG, 0.002
        connection = ask(server, stream=stream)
        until(lambda: engine.running and next(iter(engine.running)).usage.completion_tokens > 3)
        connection.close()
        until(lambda: not engine.running and server.idle)
        until(lambda: server.metric("requests_total", endpoint=CHAT, status="499") == 1)
        assert server.metric("generated_tokens_total") < 1000

    def test_while_waiting(self, server: Live, engine: FakeEngine, stream: bool) -> None:
        engine.prefill.clear()
        running = [ask(server, stream=stream) for _ in range(2)]
        until(lambda: len(engine.running) == 2)
        waiting = ask(server, stream=stream)
        until(lambda: server.service.queue.waiting == 1)
        waiting.close()
        until(lambda: server.service.queue.waiting == 0)
        assert len(engine.running) == 2
        for connection in running:
            connection.close()
        until(lambda: server.idle)


def test_whoever_does_not_read_is_dropped(server: Live, engine: FakeEngine) -> None:
    engine.parts = LONG
    with ask(server, stream=True):
        until(lambda: engine.running)
        until(lambda: server.idle)
    until(lambda: server.metric("requests_total", endpoint=CHAT, status="499") == 1)
    assert server.metric("generated_tokens_total") < 0.8 * len(LONG)


def test_whoever_reads_slowly_gets_everything(server: Live, engine: FakeEngine) -> None:
    engine.parts = LONG[:3000]
    body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True}
    with httpx.stream("POST", server.url + CHAT, json=body, timeout=60) as answer:
        time.sleep(0.2)
        data = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: {")]
    texts = [json.loads(each)["choices"][0]["delta"].get("content") or "" for each in data]
    assert "".join(texts) == "".join(part.text for part in engine.parts)  # type: ignore[union-attr]


def test_as_many_at_once_as_may_be(server: Live, engine: FakeEngine) -> None:
    engine.delay = 0.01
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: server.post(CHAT, body), range(8)))
    assert [each.status_code for each in answers] == [200] * 8
    assert engine.most == 2


def test_the_server_answers_while_it_computes(server: Live, engine: FakeEngine) -> None:
    engine.prefill.clear()
    with ask(server, stream=False), ask(server, stream=True):
        until(lambda: len(engine.running) == 2)
        assert server.get("/health").json() == {"status": "ok"}


def test_a_client_with_many_requests_does_not_starve_another(server: Live, engine: FakeEngine) -> None:
    engine.prefill.clear()
    greedy = [ask(server, stream=False, client="10.0.0.1") for _ in range(2)]
    until(lambda: len(engine.running) == 2)
    greedy += [ask(server, stream=False, client="10.0.0.1") for _ in range(5)]
    until(lambda: server.service.queue.waiting == 5)
    modest = ask(server, stream=False, client="10.0.0.2")
    until(lambda: server.service.queue.waiting == 6)
    engine.delay = 0.05
    engine.prefill.set()
    assert modest.recv(9) == b"HTTP/1.1 "
    assert server.service.queue.waiting + server.service.queue.running >= 2
    for connection in [*greedy, modest]:
        connection.close()
    until(lambda: server.idle)


@pytest.mark.parametrize("stream", [False, True])
def test_stopping_cancels_what_runs(stream: bool) -> None:
    engine = FakeEngine()
    with live(engine, parallel=1, stalled_seconds=60) as server:
        engine.prefill.clear()
        found: list[Any] = []
        body = {"messages": [{"role": "user", "content": "Hi"}], "stream": stream}
        threads = [threading.Thread(target=lambda: found.append(server.post(CHAT, body))) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: engine.running and server.service.queue.waiting)
        stopping = time.monotonic()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - stopping < 15  # and not until they are taken for stalled
    assert not engine.running
    assert [each.status_code for each in found] == [200 if stream else 503] * 2
    assert all("the server is stopping" in each.text for each in found)
