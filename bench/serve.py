"""How the server holds up: clients that ask at once, many of which leave before they have their answer.

Usage: serve.py [-m TARGET.gguf -md DRAFTER.gguf] [--requests 200] [--warm 300] [--clients 8] [--parallel 2]
                [--cut 0.33] [-n 48] [--seed 1] [--json FILE]
Starts `ds4py serve` on a free port, asks each prompt alone, and then all clients ask at once, greedily and with a fixed
draft length. The first client has four connections, the others one each. A share of the requests is cut off at a
random moment of the time that the request takes alone. Requests before those that count fill the sessions' caches of
graphs. Reported are answers that differ from those asked alone, how much the server's anonymous memory grew from the
second quarter of the requests to the last (Linux), and times to the first token. Without -m it serves the embedded
pair.
"""

import argparse
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from urllib.parse import urlsplit

from arguments import position, positive, share
from machine import print_header
from prompts import CODE, PROSE

from ds4py import data

PATH = "/v1/completions"
LENGTHS = (40, 4000, 300, 1500, 80, 2500, 600, 6000, 150, 1000)
"""Characters of the prompts."""


@dataclass
class Alone:
    """What a request gave with nobody else there."""

    text: str
    seconds: float


@dataclass
class Job:
    """One request: whose, which prompt, and the share of its time after which it is cut off (None: it is not)."""

    client: int
    prompt: int
    stream: bool
    cut: float | None


@dataclass
class Report:
    """What came of a load. Times in seconds, memory in bytes."""

    finished: int = 0
    cut: int = 0
    wrong: int = 0
    failed: list[str] = field(default_factory=list)
    first_token: dict[int, list[float]] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def p95(self) -> float:
        """Of the times to the first token, of clients with one connection."""
        return quantiles(self.modest, n=20)[-1]

    @property
    def modest(self) -> list[float]:
        """Times to the first token of clients with one connection."""
        return [each for client, times in self.first_token.items() if client for each in times]

    @property
    def growth(self) -> int:
        """Of the memory, from the second quarter of the requests to the last."""
        quarter = len(self.memory) // 4
        return max(self.memory[-quarter:]) - max(self.memory[quarter : 2 * quarter])


def main() -> None:
    """Starts the server, loads it, prints."""
    args = arguments()
    print_header(args.model or str(data.TARGET), **{k: v for k, v in vars(args).items() if k not in ("model", "json")})
    flags = ["-m", args.model] if args.model else []
    flags += ["-md", args.drafter] if args.drafter else []
    with served(*flags, "--parallel", str(args.parallel)) as (url, pid):
        prompts = texts()
        alone = [ask_alone(url, prompt, args.n) for prompt in prompts]
        rng = random.Random(args.seed)
        requests = args.warm + args.requests
        jobs = plan(requests, clients=args.clients, prompts=len(prompts), cut=args.cut, rng=rng)
        load(url, pid, prompts, alone, jobs[: args.warm], args.n)
        report = load(url, pid, prompts, alone, jobs[args.warm :], args.n)
    show(report)
    if args.json:
        Path(args.json).write_text(json.dumps(asdict(report)))


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model")
    parser.add_argument("-md", "--drafter")
    parser.add_argument("--requests", type=positive, default=200)
    parser.add_argument("--warm", type=position, default=300)
    parser.add_argument("--clients", type=positive, default=8)
    parser.add_argument("--parallel", type=positive, default=2)
    parser.add_argument("--cut", type=share, default=0.33)
    parser.add_argument("-n", type=positive, default=48)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    return parser.parse_args()


def texts() -> list[str]:
    """Prompts of many lengths, no two of which begin alike."""
    return [f"# {number}\n" + "".join(CODE + PROSE)[:length] for number, length in enumerate(LENGTHS)]


def plan(requests: int, *, clients: int, prompts: int, cut: float, rng: random.Random) -> list[Job]:
    """The requests, in turn for every client; prompts by their numbers."""
    return [
        Job(
            client=number % clients,
            prompt=rng.randrange(prompts),
            stream=rng.random() < 0.5,
            cut=rng.random() if rng.random() < cut else None,
        )
        for number in range(requests)
    ]


@contextmanager
def served(*flags: str) -> Iterator[tuple[str, int]]:
    """A server with a fixed draft length in a process of its own: its URL and the process."""
    fixed = ("--port", "0", "--draft", "dspark", "--draft-length", "3")
    command = [sys.executable, "-m", "ds4py", "serve", *fixed, *flags]
    # Elsewhere than in the source tree, whose ds4py has no native module.
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tempfile.gettempdir()) as process:
        assert process.stderr is not None
        url = next((found[1] for line in process.stderr if (found := re.search(r"ready: (http://\S+)", line))), None)
        if url is None:
            raise SystemExit("the server did not start")
        reader = threading.Thread(target=deque, args=(process.stderr, 0))  # so that its log does not fill the pipe
        reader.start()
        try:
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(20)
            reader.join()


def body(prompt: str, n: int, stream: bool) -> str:
    """A request."""
    return json.dumps({"prompt": prompt, "max_tokens": n, "temperature": 0, "stream": stream})


def headers(client: int) -> dict[str, str]:
    """Each client has an address of its own, as behind a proxy."""
    return {"Content-Type": "application/json", "X-Forwarded-For": f"10.0.0.{client + 1}"}


def connect(url: str) -> http.client.HTTPConnection:
    """A connection of its own."""
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)


def ask_alone(url: str, prompt: str, n: int) -> Alone:
    """One request with nobody else there."""
    started = time.perf_counter()
    text, _ = ask(url, prompt, n, stream=False, client=0)
    return Alone(text, time.perf_counter() - started)


def ask(url: str, prompt: str, n: int, *, stream: bool, client: int) -> tuple[str, float | None]:
    """The text of an answer, and the seconds to its first token where it streams."""
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


def ask_and_leave(url: str, prompt: str, n: int, job: Job, seconds: float) -> None:
    """Sends a request and hangs up."""
    connection = connect(url)
    connection.request("POST", PATH, body(prompt, n, job.stream), headers(job.client))
    time.sleep(seconds)
    assert isinstance(connection.sock, socket.socket)
    connection.sock.close()


def load(url: str, pid: int, prompts: Sequence[str], alone: Sequence[Alone], jobs: Sequence[Job], n: int) -> Report:
    """Runs the jobs, each client's in their order; the first client's four at a time."""
    report, lock = Report(), threading.Lock()
    queues = {job.client: deque(each for each in jobs if each.client == job.client) for job in jobs}

    def work(queue: "deque[Job]") -> None:
        while True:
            try:
                job = queue.popleft()
            except IndexError:
                return
            run(job)

    def run(job: Job) -> None:
        prompt, expected = prompts[job.prompt], alone[job.prompt]
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
            report.memory.append(anonymous(pid))
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


def anonymous(pid: int) -> int:
    """Bytes of a process's own memory; 0 where the system does not say."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return 1024 * int(found[1]) if found else 0


def show(report: Report) -> None:
    """Prints a report."""
    total = report.finished + report.cut + len(report.failed)
    print(f"{total} requests in {report.seconds:.1f} s: {report.finished} finished, {report.cut} cut off")
    print(f"{report.wrong} answers differ from those asked alone, {len(report.failed)} requests failed")
    print(f"memory {max(report.memory) / 1e6:.1f} MB at most, {report.growth / 1e6:+.1f} MB from the second quarter on")
    print(
        f"first token with one connection: mean {1000 * fmean(report.modest):.0f} ms, p95 {1000 * report.p95:.0f} ms; "
        f"with four: mean {1000 * fmean(report.first_token.get(0, [0.0])):.0f} ms"
    )


if __name__ == "__main__":
    main()
