"""Who is let in, how much, and what the server says of itself."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fake_engine import FakeEngine
from serving import Live, live, until

from ds4py.errors import FormatError
from ds4py.server import ServerOptions
from ds4py.server.run import listen

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture(scope="module")
def locked() -> Iterator[Live]:
    with live(FakeEngine(), api_key="sésame") as running:
        yield running


@pytest.fixture(scope="module")
def small() -> Iterator[Live]:
    with live(FakeEngine(), max_request_bytes=200) as running:
        yield running


class TestPaths:
    def test_what_is_not_there_is_named(self, small: Live) -> None:
        found = small.post("/chat/completions", HI)
        assert found.status_code == 404 and "POST /chat/completions" in found.json()["error"]["message"]
        found = small.get(CHAT)
        assert (found.status_code, found.headers["allow"]) == (405, "POST")
        found = small.post("/v1/messages/batches", HI)
        assert found.json()["error"]["type"] == "not_found_error"

    def test_head(self, small: Live) -> None:
        found = httpx.head(small.url + "/health")
        assert (found.status_code, found.content) == (200, b"")

    def test_a_path_is_one_line_of_the_log(self, small: Live, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level("INFO", "ds4py.server"):
            small.get("/v1/models/x%0Aforged")
        until(lambda: "GET /v1/models/x%0Aforged 404" in caplog.text)


class TestKey:
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({"authorization": "sésame"}, 401),
            ({"authorization": "Bearer"}, 401),
            ({"authorization": "Bearer sésame"}, 200),
            ({"authorization": "bearer sésame"}, 200),
            ({"x-api-key": "sésame"}, 200),
            ({"x-api-key": "sésam"}, 401),
        ],
    )
    def test_what_opens(self, locked: Live, headers: dict[str, str], status: int) -> None:
        encoded = {name: value.encode() for name, value in headers.items()}
        assert locked.post(CHAT, HI, headers=encoded).status_code == status

    def test_only_the_health_is_for_everyone(self, locked: Live) -> None:
        paths = ["/health", "/metrics", "/v1/models", "/openapi.json", "/v1/nothing"]
        assert [locked.get(path).status_code for path in paths] == [200, 401, 401, 401, 401]

    def test_each_api_has_its_own_form_of_error(self, locked: Live) -> None:
        assert locked.post(CHAT, HI).json()["error"]["code"] == "invalid_api_key"
        assert locked.post("/v1/messages", HI).json() == {
            "type": "error",
            "error": {"type": "authentication_error", "message": "the API key is missing or wrong"},
        }


class TestSize:
    def test_a_body_too_large(self, small: Live) -> None:
        answer = small.post(CHAT, HI | {"user": "x" * 200})
        assert answer.status_code == 413
        assert "allowed are 200" in answer.json()["error"]["message"]
        assert small.post("/v1/messages", {"x": "x" * 200}).json()["error"]["type"] == "request_too_large"
        assert small.post(CHAT, HI).status_code == 200

    def test_a_body_that_does_not_tell_its_length(self, small: Live) -> None:
        headers = {"content-type": "application/json"}
        pieces = iter([b'{"messages": "', b"x" * 150, b"x" * 150, b'"}'])
        answer = httpx.post(small.url + CHAT, content=pieces, headers=headers, timeout=60)
        assert answer.status_code == 413


@pytest.fixture(scope="module")
def impatient() -> Iterator[Live]:
    with live(FakeEngine(delay=0.6), sending_seconds=0.5) as running:
        yield running


class TestSlowClients:
    @pytest.mark.parametrize(
        "sent", [b"", b"POST / HTTP/1.1\r\nHost: x\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nG"]
    )
    def test_a_head_that_does_not_come(self, impatient: Live, sent: bytes) -> None:
        with connected(impatient) as client:
            client.sendall(sent)
            answer = b""
            while received := client.recv(4096):
                answer += received
        assert (b" 200 " in answer) == sent.endswith(b"G")

    def test_a_body_that_does_not_come(self, impatient: Live) -> None:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{{"
        with connected(impatient) as client:
            client.sendall(head.encode())
            answer = b""
            while received := client.recv(4096):
                answer += received
        assert answer.startswith(b"HTTP/1.1 408 ") and b"the body has not arrived within 0.5 s" in answer

    def test_an_answer_may_take_longer(self, impatient: Live) -> None:
        with httpx.Client(timeout=60) as client:
            for _ in range(2):
                assert client.post(impatient.url + CHAT, json=HI).status_code == 200


def connected(server: Live) -> socket.socket:
    host, port = server.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=60)


def test_a_full_queue() -> None:
    engine = FakeEngine()
    with live(engine, parallel=1, queue=1) as server:
        engine.prefill.clear()
        threads = [threading.Thread(target=server.post, args=(CHAT, HI)) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: server.service.queue.waiting == 1)
        answer = server.post(CHAT, HI)
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 0
        assert answer.json()["error"]["type"] == "rate_limit_error"
        assert server.get("/metrics").text.count("ds4py_queue_length 1.0") == 1
        engine.prefill.set()
        for thread in threads:
            thread.join(60)
        until(lambda: server.idle)


def test_pages_of_other_origins() -> None:
    asked = {"origin": "http://page.example", "access-control-request-method": "POST"}
    with live(FakeEngine()) as server:
        answer = httpx.options(server.url + CHAT, headers=asked)
        assert "access-control-allow-origin" not in answer.headers
        assert "access-control-allow-origin" not in server.post(CHAT, HI, headers=asked).headers
    with live(FakeEngine(), cors_origins=("http://page.example",), api_key="k") as server:
        answer = httpx.options(server.url + CHAT, headers=asked)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "http://page.example"


def test_a_form_is_not_a_request() -> None:
    """What a page of any origin could send without asking."""
    with live(FakeEngine()) as server:
        answer = httpx.post(server.url + CHAT, content=b'{"messages": []}', headers={"content-type": "text/plain"})
        assert answer.status_code == 400 and "application/json" in answer.text


class TestLoading:
    def test_ready_means_ready(self) -> None:
        engine, go = FakeEngine(), threading.Event()

        def load(progress: Callable[[float], None]) -> FakeEngine:
            progress(0.25)
            go.wait(10)
            return engine

        with live(load, wait=False) as server:
            until(lambda: server.service.progress == 0.25)
            answer = server.get("/health")
            assert (answer.status_code, answer.json()) == (503, {"status": "loading", "progress": 0.25})
            answer = server.post(CHAT, HI)
            assert answer.status_code == 503 and "loading (25%)" in answer.text
            assert server.get("/v1/models").status_code == 503
            go.set()
            until(lambda: server.get("/health").status_code == 200)
            assert engine.calls[0]["max_tokens"] == 4  # it has computed before
            assert server.post(CHAT, HI).status_code == 200

    def test_a_model_that_cannot_be_loaded_ends_it(self) -> None:
        from ds4py.server.run import serve

        def load(progress: Callable[[float], None]) -> Any:
            raise FormatError("not a model")

        with pytest.raises(FormatError, match="not a model"):
            serve(ServerOptions(port=0), load)

    def test_it_can_be_stopped_meanwhile(self) -> None:
        stopped = threading.Event()

        def load(progress: Callable[[float], None]) -> FakeEngine:
            try:
                for _ in range(1000):
                    progress(0.5)
                    stopped.wait(0.01)
            except BaseException:
                stopped.set()
                raise
            return FakeEngine()

        with live(load, wait=False) as server:
            until(lambda: server.service.progress == 0.5)
        assert stopped.is_set()


def test_a_port_that_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match=r"the port is taken.*--port"):
            listen(ServerOptions(port=other.getsockname()[1]))


def test_metrics() -> None:
    with live(FakeEngine()) as server:
        server.post(CHAT, HI)
        server.post(CHAT, HI | {"n": 2})
        server.get("/made/up")
        until(lambda: server.metric("generated_tokens_total") == 2)
        text = server.get("/metrics").text
    for line in (
        'ds4py_requests_total{endpoint="/v1/chat/completions",status="200"} 1.0',
        'ds4py_requests_total{endpoint="/v1/chat/completions",status="400"} 1.0',
        'ds4py_requests_total{endpoint="other",status="404"} 1.0',
        "ds4py_prompt_tokens_total 2.0",
        "ds4py_cached_tokens_total 1.0",
        'ds4py_prompt_cache_total{result="hit"} 1.0',
        "ds4py_time_to_first_token_seconds_count 1.0",
        "ds4py_queue_length 0.0",
    ):
        assert line in text.splitlines(), text
    assert not re.search("made.up", text)
