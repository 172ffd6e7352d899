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


def ask_and_leave(url: str, prompt: str, n: int, job: PlannedRequest, seconds: float) -> None:
    """Sends a request, waits, and hangs up without reading the answer."""
    connection = connect(url)
    connection.request("POST", PATH, body(prompt, n, job.stream), headers(job.client))
    time.sleep(seconds)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.close()


def load_server(
    url: str, pid: int, prompts: Sequence[str], baselines: Sequence[Baseline], jobs: Sequence[PlannedRequest], n: int
) -> LoadReport:
    """Runs the requests of each client in order. The first client makes four at a time, the others one."""
    report, lock = LoadReport(), threading.Lock()
    queues = {job.client: deque(each for each in jobs if each.client == job.client) for job in jobs}

    def work(queue: "deque[PlannedRequest]") -> None:
        while True:
            try:
                job = queue.popleft()
            except IndexError:
                return
            run(job)

    def run(job: PlannedRequest) -> None:
        prompt, expected = prompts[job.prompt], baselines[job.prompt]
        try:
            if job.cut is not None:
                ask_and_leave(url, prompt, n, job, job.cut * expected.seconds)
                text, first = None, None
            else:
                text, first = ask(url, prompt, n, stream=job.stream, client=job.client)
        except (OSError, http.client.HTTPException) as error:
            with lock:
                report.failed.append(repr(error))
            return
        with lock:
            report.memory.append(anonymous_bytes(pid))
            if text is None:
                report.cut += 1
                return
            report.finished += 1
            report.wrong += text != expected.text
            if first is not None:
                report.first_token.setdefault(job.client, []).append(first)

    started = time.perf_counter()
    workers = [queue for client, queue in queues.items() for _ in range(4 if client == 0 else 1)]
    threads = [threading.Thread(target=work, args=(queue,)) for queue in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.seconds = time.perf_counter() - started
    return report


def anonymous_bytes(pid: int) -> int:
    """Returns the anonymous memory of a process, or 0 if the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0
