"""Measures seconds and peak anonymous memory of loading a GGUF on the CPU, with the file in the page cache.

Usage: load.py MODEL.gguf [--rounds 3] [--context N]
A child process imports ds4py, waits, loads, and waits again; this process reads RssAnon of the child every
millisecond. The result is the growth from before the load to the peak during it. With --context a session is opened
after the load, and its growth is shown apart. Linux only.
"""

import argparse
import re
import select
import statistics
import subprocess
import sys
from pathlib import Path

from machine import print_header

CHILD = """
import sys, time
import ds4py

def step(work):
    print(flush=True)
    sys.stdin.readline()
    begin = time.perf_counter()
    kept = work()
    print(time.perf_counter() - begin, flush=True)
    return kept

engine = step(lambda: ds4py.Engine(sys.argv[1], device="cpu"))
context = int(sys.argv[2])
session = step(lambda: engine.session(context=context) if context else None)
sys.stdin.readline()
"""


def anonymous_bytes(pid: int) -> int:
    """Returns the anonymous resident memory of a process."""
    found = re.search(r"^RssAnon:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit("load.py: /proc/PID/status has no RssAnon here")
    return int(found[1]) * 1024


def warm(path: str) -> None:
    """Reads the file into the page cache."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


class Child:
    """The process that loads. It waits before each step."""

    def __init__(self, path: str, context: int) -> None:
        command = [sys.executable, "-c", CHILD, path, str(context)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self) -> tuple[float, int]:
        """Lets the child run its next step. Returns its seconds and the growth of anonymous memory to the peak."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdout.readline()
        before = peak = anonymous_bytes(self.process.pid)
        print(file=self.process.stdin, flush=True)
        while not select.select([self.process.stdout], [], [], 0.001)[0]:
            peak = max(peak, anonymous_bytes(self.process.pid))
        return float(self.process.stdout.readline()), peak - before

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--context", type=int, default=0)
    args = parser.parse_args()
    print_header(args.model, rounds=args.rounds, context=args.context or "none")
    warm(args.model)
    loads, sessions = [], []
    for _ in range(args.rounds):
        child = Child(args.model, args.context)
        loads.append(child.step())
        sessions.append(child.step())
        child.close()
    size = Path(args.model).stat().st_size
    seconds = statistics.median(load[0] for load in loads)
    peak = max(load[1] for load in loads)
    print(f"load     {seconds:.3f} s, {seconds / (size / 1e9):.3f} s per GB (median)")
    print(f"memory   {peak / 1e6:.1f} MB anonymous at the peak, {100 * peak / size:.2f} % of the file (largest)")
    if args.context:
        print(f"session  {max(session[1] for session in sessions) / 1e6:.1f} MB more")


main()
