"""Clients that load a server at once, many of which leave before they have their answer (`serve.py`)."""

import http.client
import json
import random
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from urllib.parse import urlsplit

PATH = "/v1/completions"


@dataclass
class Baseline:
    """The answer to a request while the server has no other, and its time."""

    text: str
    seconds: float


@dataclass
class PlannedRequest:
    """A request of a client. `cut` is the share of its time after which the client hangs up, or None."""

    client: int
    prompt: int
    stream: bool
    cut: float | None


@dataclass
class LoadReport:
    """The results of a load. Times are in seconds, memory is in bytes."""

    finished: int = 0
    cut: int = 0
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    first_token: dict[int, list[float]] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def p95_first_token(self) -> float:
        """The 95th percentile of the times to the first token, of clients with one connection."""
        return quantiles(self.single_connection_times, n=20)[-1]

    @property
    def single_connection_times(self) -> list[float]:
        """The times to the first token of clients with one connection."""
        return [each for client, times in self.first_token.items() if client for each in times]

    @property
    def memory_growth(self) -> int:
        """The growth of the memory from the second quarter of the requests to the last."""
        quarter = len(self.memory) // 4
        return max(self.memory[-quarter:]) - max(self.memory[quarter : 2 * quarter])


def plan_requests(requests: int, *, clients: int, prompts: int, cut: float, rng: random.Random) -> list[PlannedRequest]:
    """Plans the requests, which the clients make in turn."""
    return [
        PlannedRequest(
            client=number % clients,
            prompt=rng.randrange(prompts),
            stream=rng.random() < 0.5,
            cut=rng.random() if rng.random() < cut else None,
        )
        for number in range(requests)
    ]


def body(prompt: str, n: int, stream: bool) -> str:
    """Makes the body of a request."""
    return json.dumps({"prompt": prompt, "max_tokens": n, "temperature": 0, "stream": stream})


def headers(client: int) -> dict[str, str]:
    """Makes the headers of a request. Each client has an address of its own, as behind a proxy."""
    return {"Content-Type": "application/json", "X-Forwarded-For": f"10.0.0.{client + 1}"}


def connect(url: str) -> http.client.HTTPConnection:
    """Opens a new connection."""
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)


def measure_baseline(url: str, prompt: str, n: int) -> Baseline:
    """Asks one prompt while the server has no other request."""
    started = time.perf_counter()
    text, _ = ask(url, prompt, n, stream=False, client=0)
    return Baseline(text, time.perf_counter() - started)


def ask(url: str, prompt: str, n: int, *, stream: bool, client: int) -> tuple[str, float | None]:
    """Returns the text of an answer, and the seconds to its first token if it streams."""
    started = time.perf_counter()
    connection = connect(url)
    connection.request("POST", PATH, body(prompt, n, stream), headers(client))
    answer = connection.getresponse()
    if answer.status != 200:
        raise OSError(f"status {answer.status}: {answer.read()!r}")
    if not stream:
        text: str = json.loads(answer.read())["choices"][0]["text"]
        connection.close()
        return text, None
    first, parts = None, []
    for line in answer:
        if line.startswith(b"data: {"):
            first = time.perf_counter() - started if first is None else first
            parts.append(json.loads(line[6:])["choices"][0]["text"])
    connection.close()
    return "".join(parts), first


def ask_and_leave(url: str, prompt: str, n: int, planned: PlannedRequest, seconds: float) -> None:
    """Sends a request, waits, and hangs up without reading the answer."""
    connection = connect(url)
    connection.request("POST", PATH, body(prompt, n, planned.stream), headers(planned.client))
    time.sleep(seconds)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.close()


class Load:
    """Runs planned requests against a server, and reports their answers."""

    def __init__(self, url: str, pid: int, prompts: Sequence[str], baselines: Sequence[Baseline], n: int) -> None:
        self.report = LoadReport()
        self._url, self._pid, self._n = url, pid, n
        self._prompts, self._baselines = prompts, baselines
        self._lock = threading.Lock()

    def run(self, queue: "deque[PlannedRequest]") -> None:
        """Makes the requests of a queue, which several threads may share, until it is empty."""
        while True:
            try:
                planned = queue.popleft()
            except IndexError:
                return
            try:
                text, first = self._ask(planned)
            except (OSError, http.client.HTTPException) as error:
                with self._lock:
                    self.report.failed.append(repr(error))
            else:
                with self._lock:
                    self._record(planned, text, first)

    def _ask(self, planned: PlannedRequest) -> tuple[str | None, float | None]:
        """Makes one request. Returns its text and the seconds to its first token, or None if it was cut off."""
        prompt = self._prompts[planned.prompt]
        if planned.cut is None:
            return ask(self._url, prompt, self._n, stream=planned.stream, client=planned.client)
        seconds = planned.cut * self._baselines[planned.prompt].seconds
        ask_and_leave(self._url, prompt, self._n, planned, seconds)
        return None, None

    def _record(self, planned: PlannedRequest, text: str | None, first: float | None) -> None:
        self.report.memory.append(anonymous_bytes(self._pid))
        if text is None:
            self.report.cut += 1
            return
        self.report.finished += 1
        self.report.wrong += text != self._baselines[planned.prompt].text
        if first is not None:
            self.report.first_token.setdefault(planned.client, []).append(first)


def run_requests(load: Load, requests: Sequence[PlannedRequest]) -> LoadReport:
    """Runs the requests of each client in order. The first client makes four at a time, the others one."""
    clients = {each.client for each in requests}
    queues = {client: deque(each for each in requests if each.client == client) for client in clients}
    started = time.perf_counter()
    workers = [queue for client, queue in queues.items() for _ in range(4 if client == 0 else 1)]
    threads = [threading.Thread(target=load.run, args=(queue,)) for queue in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.report.seconds = time.perf_counter() - started
    return load.report


def anonymous_bytes(pid: int) -> int:
    """Returns the anonymous memory of a process, or 0 if the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0
