"""Measures verifies of a few rows, and prompts, beside llama.cpp and beside what the memory allows.

Usage: peers.py MODEL.gguf... [-t THREADS] [--depth 4096] [--prompts 512,2048] [--rows 6] [--rounds 7] [--skew 0]
                [--device cpu] [--llama-python PYTHON] [--json FILE]

Both engines have the same file, threads and ids, each in a process of its own. They take turns at every work of every
round, and never compute at the same time. The one that begins changes from round to round. Times are medians.
The memory's bandwidth is measured in every round, too. The bytes limit of a work is the time in which the memory gives
what the work must read: dense weights once, the union of the experts that its rows chose once, the keys before them.
The union is counted by running the same rows node by node; for prompts it is what chance has.

--skew S has the share S of a verify's rows repeat the row before, because real text's rows share more experts than
random ones. --llama-python is an interpreter that has llama-cpp-python==0.3.36, built with -DGGML_NATIVE=ON; without
one, llama.cpp's column stays empty. Where llama.cpp aborts with its extra buffer types (AMX), it runs without, and the
run says so.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from arguments import positive, prompts, rows, share
from bandwidth import Memory
from child import Worker, WorkerDied
from machine import cpu_model, print_header
from must_read import Target
from peers_table import Table, Work, lines
from rows import random_ids, verify_rows

import ds4py
from ds4py import RequestError, _native
from ds4py.constants import MAX_ROWS
from ds4py.runtime.threads import default_threads

WORKER, FIND = str(Path(__file__).with_name("peers_worker.py")), "import llama_cpp; print(llama_cpp.__version__)"
ROUNDS = 7


def works(args: argparse.Namespace) -> Iterator[Work]:
    """Yields what is measured, in the order of the table."""
    for depth in (0, args.depth):
        yield from (Work("verify", count, depth) for count in range(1, args.rows + 1))
    yield from (Work("prefill", tokens) for tokens in args.prompts)


def ids_of(work: Work, vocab: int, skew: float) -> list[int]:
    """Returns the ids of a work's rows, the same in every round and for both engines."""
    if work.kind == "prefill":
        return random_ids(vocab, work.rows, seed=work.rows)
    return verify_rows(vocab, MAX_ROWS, skew, seed=1)[: work.rows]


def request(work: Work, vocab: int, skew: float) -> dict[str, Any]:
    """Makes the request of a work to a worker."""
    return {work.kind: ids_of(work, vocab, skew), "depth": work.depth}


def find_llama(python: str | None) -> str | None:
    """Returns the version of an interpreter's llama-cpp-python, or None if no interpreter is given.

    Raises RequestError if the interpreter that was given has none.
    """
    try:
        done = subprocess.run([python or sys.executable, "-c", FIND], capture_output=True, text=True)
    except OSError as error:
        raise RequestError(f"--llama-python {python}: {error.strerror}; give a Python interpreter") from None
    if done.returncode == 0:
        return done.stdout.strip()
    if python:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RequestError(f"--llama-python {python}: {reason}; there, pip install llama-cpp-python==0.3.36")
    return None


def started(python: str, kind: str, path: str, args: argparse.Namespace, *flags: str) -> Worker:
    """Starts an engine, which loads the model, runs a prompt, and fills its deep state. Raises WorkerDied."""
    context = max(args.depth + MAX_ROWS, *args.prompts)
    worker = Worker([python, WORKER, kind, path, args.device, *map(str, (args.threads, args.depth, context)), *flags])
    worker.ask(request(Work("prefill", min(args.prompts)), worker.vocab, 0))
    worker.ask({"fill": random_ids(worker.vocab, args.depth, seed=0)})
    return worker


def started_llama(path: str, args: argparse.Namespace) -> Worker:
    """Starts llama.cpp, without extra buffer types if it dies with them. Raises WorkerDied."""
    python = args.llama_python or sys.executable
    try:
        return started(python, "llama", path, args)
    except WorkerDied:
        return started(python, "llama", path, args, "--no-extra-buffers")


def measure(target: Target, workers: dict[str, Worker], args: argparse.Namespace) -> Table:
    """Runs all rounds."""
    memory, vocab = Memory(args.threads), workers["ours"].vocab
    seconds: dict[str, dict[Work, list[float]]] = {name: {work: [] for work in works(args)} for name in workers}
    bandwidths = []
    for number in range(args.rounds):
        bandwidths.append(memory.bandwidth())
        for work in works(args):
            for name in list(workers) if number % 2 else reversed(workers):
                seconds[name][work].append(workers[name].ask(request(work, vocab, args.skew))["seconds"])
    experts = {work: experts_of(workers["ours"], work, args.skew) for work in works(args) if work.kind == "verify"}
    return Table(target, seconds, experts, bandwidths)


def experts_of(ours: Worker, work: Work, skew: float) -> dict[str, int]:
    """Returns the distinct experts that a verify's rows read, by tensor."""
    found: dict[str, int] = ours.ask({"experts": ids_of(work, ours.vocab, skew), "depth": work.depth})["experts"]
    return found


def checked(path: str, args: argparse.Namespace) -> Target:
    """Returns the target of a file whose context holds the works. Raises FormatError, RequestError."""
    target = Target(_native.GgufFile.open(path))
    wanted, most = max(args.depth + MAX_ROWS, *args.prompts), target.hyperparameters.context
    if wanted > most:
        raise RequestError(
            f"{path} was trained for {most} positions, and {wanted} are wanted: give a smaller --depth or --prompts"
        )
    return target


def compare(path: str, target: Target, llama: str | None, args: argparse.Namespace) -> dict[str, Any]:
    """Measures one file, prints the results, and returns them as plain values. Raises WorkerDied."""
    settings = {name: getattr(args, name) for name in ("device", "threads", "depth", "rounds", "skew")}
    settings["context"] = max(args.depth + MAX_ROWS, *args.prompts)
    print_header(path, **settings)
    with ExitStack() as stack:
        workers = {"ours": stack.enter_context(closing(started(sys.executable, "ours", path, args)))}
        print(f"ds4py    {workers['ours'].began['about']}")
        if llama:
            workers["llama"] = stack.enter_context(closing(started_llama(path, args)))
            llama = f"llama-cpp-python {llama}, {workers['llama'].began['about']}"
        print(f"peer     {llama or 'none: llama_cpp is not installed here, see --llama-python'}", flush=True)
        table = measure(target, workers, args)
    print(*lines(table), sep="\n", end="\n\n", flush=True)
    file = {"name": Path(path).name, "bytes": os.path.getsize(path)}
    return {"file": file, "settings": settings, "peer": llama, **table.as_dict()}


def parser() -> argparse.ArgumentParser:
    """Builds the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("models", nargs="+", metavar="MODEL")
    made.add_argument("-t", "--threads", type=positive, default=default_threads())
    made.add_argument("--depth", type=positive, default=4096)
    made.add_argument("--prompts", type=prompts, default=[512, 2048])
    made.add_argument("--rows", type=rows, default=6)
    made.add_argument("--rounds", type=positive, default=ROUNDS, help="fewer than 7 are for trying it out")
    made.add_argument("--skew", type=share, default=0.0)
    made.add_argument("--device", default="cpu", help="of both; llama.cpp takes its first GPU where it is not cpu")
    made.add_argument("--llama-python", metavar="PYTHON")
    made.add_argument("--json", type=Path, metavar="FILE")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench and returns the exit code."""
    args = parser().parse_intermixed_args(arguments)
    try:
        if args.json:
            args.json.touch()  # fail before the work if the file cannot be written
        llama = find_llama(args.llama_python)
        targets = {path: checked(path, args) for path in args.models}
        found = [compare(path, target, llama, args) for path, target in targets.items()]
    except (ds4py.Error, OSError, WorkerDied) as error:
        print(f"peers.py: error: {error}", file=sys.stderr)
        return 2
    if args.json:
        build = f"ds4py {ds4py.__version__} ({ds4py.__commit__})"
        report = {"machine": cpu_model(), "build": build, "files": found}
        args.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
