"""Loads the server with clients that ask at once, many of which leave before they have their answer.

Usage: serve.py [-m TARGET.gguf -md DRAFTER.gguf] [--requests 200] [--warm 300] [--clients 8] [--parallel 2]
                [--cut 0.33] [-n 48] [--seed 1] [--json FILE]
Starts `ds4py serve` on a free port and asks each prompt alone. Then all clients ask at once, greedily and with a fixed
width. The first client has four connections, the others one each. A share of the requests is cut off at a random moment
of the time that the request takes alone. Requests of the warm-up fill the sessions' caches of graphs. The report has
the answers that differ from those asked alone, the growth of the server's anonymous memory from the second quarter of
the requests to the last (Linux), and times to the first token. Without -m it serves the embedded pair.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from statistics import fmean

from arguments import position, positive, share
from machine import print_header
from prompts import CODE, PROSE
from serve_load import Load, LoadReport, measure_baseline, plan_requests, run_requests

from ds4py import data

LENGTHS = (40, 4000, 300, 1500, 80, 2500, 600, 6000, 150, 1000)
"""Lengths of the prompts in characters."""


def main() -> None:
    """Starts the server, loads it, and prints the report."""
    args = arguments()
    print_header(args.model or str(data.TARGET), **{k: v for k, v in vars(args).items() if k not in ("model", "json")})
    flags = ["-m", args.model] if args.model else []
    flags += ["-md", args.drafter] if args.drafter else []
    with served(*flags, "--parallel", str(args.parallel)) as (url, pid):
        prompts = texts()
        baselines = [measure_baseline(url, prompt, args.n) for prompt in prompts]
        rng = random.Random(args.seed)
        requests = args.warm + args.requests
        planned = plan_requests(requests, clients=args.clients, prompts=len(prompts), cut=args.cut, rng=rng)
        run_requests(Load(url, pid, prompts, baselines, args.n), planned[: args.warm])
        report = run_requests(Load(url, pid, prompts, baselines, args.n), planned[args.warm :])
    show(report)
    if args.json:
        Path(args.json).write_text(json.dumps(asdict(report)))


def arguments() -> argparse.Namespace:
    """Parses the command line."""
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
    """Makes prompts of many lengths. No two of them begin alike."""
    return [f"# {number}\n" + "".join(CODE + PROSE)[:length] for number, length in enumerate(LENGTHS)]


@contextmanager
def served(*flags: str) -> Iterator[tuple[str, int]]:
    """Runs a server with a fixed width in a process of its own. Yields its URL and its process id."""
    fixed = ("--port", "0", "--draft", "dspark", "--width", "3")
    command = [sys.executable, "-m", "ds4py", "serve", *fixed, *flags]
    # It runs outside the source tree, whose `ds4py` folder has no native module.
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


def show(report: LoadReport) -> None:
    """Prints a report."""
    total = report.finished + report.cut + len(report.failed)
    print(f"{total} requests in {report.seconds:.1f} s: {report.finished} finished, {report.cut} cut off")
    print(f"{report.wrong} answers differ from those asked alone, {len(report.failed)} requests failed")
    growth = report.memory_growth / 1e6
    print(f"memory {max(report.memory) / 1e6:.1f} MB at most, {growth:+.1f} MB from the second quarter on")
    mean = 1000 * fmean(report.single_connection_times)
    print(
        f"first token with one connection: mean {mean:.0f} ms, p95 {1000 * report.p95_first_token:.0f} ms; "
        f"with four: mean {1000 * fmean(report.first_token.get(0, [0.0])):.0f} ms"
    )


if __name__ == "__main__":
    main()
