"""Measures tokens per second of prefill and decode beside llama-cpp-python, on one GGUF file, in turns.

Usage: decode.py MODEL.gguf [--threads N] [--context N] [--prompt 512] [--decode 32] [--rounds 5] [--peer PYTHON]
Needs the extra `bench`. Each engine runs in a process of its own and waits while the other works; a round is one
prefill and one decode of each, and the ratios are those of the medians over the rounds.

On CPUs with AMX, llama-cpp-python 0.3.36 may abort on this architecture while its extra buffer types are on. Then it is
started again without them, and the run says so.
"""

import argparse
import os
import random
import statistics
import sys
from pathlib import Path
from typing import Any

from child import Worker, WorkerDied
from machine import print_header

WORKER = str(Path(__file__).with_name("worker.py"))


def started(python: str, kind: str, args: argparse.Namespace, *flags: str) -> Worker:
    """Starts an engine in a child process. Raises WorkerDied."""
    return Worker([python, WORKER, kind, args.model, str(args.threads), str(args.context), *flags])


def start_peer(args: argparse.Namespace) -> Worker:
    """Starts the peer and runs a warm-up. If it dies, starts it again without extra buffer types."""
    flags = [] if args.peer_extra_buffers != "off" else ["--no-extra-buffers"]
    try:
        peer = started(args.peer, "peer", args, *flags)
        peer.ask(request(args, peer.vocab, seed=0))
    except WorkerDied:
        if flags or args.peer_extra_buffers == "on":
            raise
        flags = ["--no-extra-buffers"]
        peer = started(args.peer, "peer", args, *flags)
        peer.ask(request(args, peer.vocab, seed=0))
    print("peer     llama-cpp-python, extra buffer types " + ("off" if flags else "on"), flush=True)
    return peer


def request(args: argparse.Namespace, vocab: int, *, seed: int) -> dict[str, Any]:
    """Makes random tokens for one round, the same for both engines."""
    draw = random.Random(seed)
    return {
        "prompt": [draw.randrange(vocab) for _ in range(args.prompt)],
        "decode": [draw.randrange(vocab) for _ in range(args.decode)],
    }


def measure(args: argparse.Namespace, workers: dict[str, Worker]) -> dict[str, dict[str, list[float]]]:
    """Returns the tokens per second of every round by engine and phase. The engines take turns at beginning."""
    found: dict[str, dict[str, list[float]]] = {name: {"prefill": [], "decode": []} for name in workers}
    for number in range(args.rounds):
        order = list(workers) if number % 2 == 0 else list(reversed(workers))
        for name in order:
            answer = workers[name].ask(request(args, workers[name].vocab, seed=1 + number))
            found[name]["prefill"].append(args.prompt / answer["prefill"])
            found[name]["decode"].append(args.decode / sum(answer["decode"]))
    return found


def show(found: dict[str, dict[str, list[float]]]) -> None:
    """Prints medians, ranges and ratios."""
    print(f"\n{'tokens/s':10}{'ds4py':>26}{'peer':>26}{'ratio':>8}")
    for phase in ("prefill", "decode"):
        medians = {name: statistics.median(rates[phase]) for name, rates in found.items()}
        cells = [
            f"{medians[name]:9.2f} ({min(found[name][phase]):.2f}..{max(found[name][phase]):.2f})"
            for name in ("ours", "peer")
        ]
        print(f"{phase:10}{cells[0]:>26}{cells[1]:>26}{medians['ours'] / medians['peer']:8.3f}")


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--context", type=int, default=4608)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default=sys.executable, help="the Python that has llama-cpp-python")
    parser.add_argument("--peer-extra-buffers", choices=("auto", "on", "off"), default="auto")
    args = parser.parse_args()
    print_header(
        args.model,
        threads=args.threads,
        context=args.context,
        prompt=args.prompt,
        decode=args.decode,
        rounds=args.rounds,
    )
    ours = started(sys.executable, "ours", args)
    ours.ask(request(args, ours.vocab, seed=0))
    workers = {"ours": ours, "peer": start_peer(args)}
    show(measure(args, workers))
    for worker in workers.values():
        worker.close()


main()
