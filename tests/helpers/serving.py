"""A server on a free port of this machine, while a test runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from ds4py.server import ServerOptions
from ds4py.server.run import Server, listen, url_of
from ds4py.server.service import Service


@dataclass
class Live:
    """A running server: its URL, and what it is made of."""

    url: str
    service: Service
    server: Server

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=60, **more)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(self.url + path, timeout=60)

    def metric(self, name: str, **labels: str) -> float:
        return self.service.metrics.registry.get_sample_value(f"ds4py_{name}", labels) or 0.0

    @property
    def idle(self) -> bool:
        return self.service.queue.running == self.service.queue.waiting == 0


@contextmanager
def live(engine: Any, *, wait: bool = True, **options: Any) -> Iterator[Live]:
    """Serves `engine`, or what it gives when it is called with a progress function."""
    with listen(ServerOptions(**{"port": 0} | options)) as listener:
        ready = threading.Event()
        service = Service(ServerOptions(**options))
        load = engine if callable(engine) else lambda progress: engine
        server = Server(service, load, ready.set, listener)
        thread = threading.Thread(target=server.run_until_stopped)
        thread.start()
        try:
            if wait:
                assert ready.wait(60), "the server did not start"
            yield Live(url_of(listener), service, server)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "the server did not stop"


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.005)
