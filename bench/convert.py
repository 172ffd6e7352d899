"""Measures speed and memory of converting, beside the time that ggml's quantiser alone needs for the same rows.

Usage: convert.py [--size 2G] [--presets q8,q4] [--threads 2] [--rounds 3] [--folder DIR] [--output DIR]
Makes a random checkpoint in FP8, FP4 and BF16 (kept in DIR for the next time), converts it with each preset in a child
process, and measures the child's wall time, processor time and peak resident memory. The quantiser alone is
ggml_quantize_chunk on values of the same tensors, from memory, on as many threads. Tensors whose bytes are copied do
not count there. Rounds alternate, and the best of each is taken. MB are of F32 values, 4 bytes each. A conversion ends
when its bytes are on the disk; --output /dev/shm leaves the disk out. On a machine that does other work, compare
processor times. Linux only.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from checkpoint import write_checkpoint
from gguf import GGMLQuantizationType as Type
from machine import print_header

from ds4py.converter import convert, quantise
from ds4py.converter.plan import SLAB, Tensor
from ds4py.converter.presets import PRESETS, TypeSelector
from ds4py.converter.shards import size_limit
from ds4py.converter.source.checkpoint import Checkpoint
from ds4py.converter.source.rows import Rows

CHILD = """
import re, sys, time
from ds4py.converter.cli import main

def peak():  # getrusage would report a peak that is inherited from the parent
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) * 1024

idle = peak()
begin, busy = time.perf_counter(), time.process_time()
code = main(sys.argv[1:])
seconds, busy = time.perf_counter() - begin, time.process_time() - busy
print(code, seconds, busy, peak(), idle)
"""


def planned(folder: Path, preset: str) -> list[Tensor]:
    """Plans the tensors of a preset."""
    options = convert.ConversionOptions(TypeSelector(PRESETS[preset]))
    return convert.target(Checkpoint(folder), Path("unused.gguf"), options).tensors


def quantiser_alone(tensors: list[Tensor], threads: int) -> tuple[float, float]:
    """Returns wall and processor seconds for all rows that are quantised.

    They are extrapolated from a slab of each kind of tensor. The values are the tensors' own, because the speed of the
    quantiser depends on them.
    """
    work: dict[tuple[Type, Type | None, int], tuple[int, Rows]] = {}
    for tensor in tensors:
        for part in tensor.parts:
            if part.kind != tensor.kind:
                rows, first = work.get((tensor.kind, part.kind, tensor.columns), (0, part))
                work[tensor.kind, part.kind, tensor.columns] = rows + part.rows, first
    wall = busy = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for (kind, _, columns), (rows, part) in work.items():
            one = seconds_per_row(pool, threads, kind, part.floats(0, min(part.rows, max(1, SLAB // columns))))
            wall, busy = wall + rows * one[0], busy + rows * one[1]
    return wall, busy


def seconds_per_row(pool: ThreadPoolExecutor, threads: int, kind: Type, x: np.ndarray) -> tuple[float, float]:
    """Returns wall and processor seconds for a row while all threads quantise for about a second."""
    quantise.quantise(kind, x[:1])
    done, begin, busy = 0, time.perf_counter(), time.process_time()
    while (spent := time.perf_counter() - begin) < 1:
        list(pool.map(lambda _: quantise.quantise(kind, x), range(2 * threads)))
        done += 2 * threads * len(x)
    return spent / done, (time.process_time() - busy) / done


def run(folder: Path, output: Path, preset: str, threads: int) -> tuple[float, float, int, int]:
    """Converts once. Returns wall and processor seconds, and peak and idle resident bytes."""
    flags = [".", str(output), "--preset", preset, "-q", "-t", str(threads)]
    command = [sys.executable, "-c", CHILD, *flags]
    # It runs outside the source tree, whose `ds4py` folder has no native module.
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    code, seconds, busy, peak, idle = done.stdout.split()
    if code != "0":
        raise SystemExit(done.stderr)
    return float(seconds), float(busy), int(peak), int(idle)


def main() -> None:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=size_limit, default="2G")
    parser.add_argument("--presets", default="q8,q4")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the checkpoint is kept (default: a temporary folder)")
    parser.add_argument("--output", type=Path, help="where the GGUF is written (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.folder or Path(temporary)) / f"random-{args.size}"
        if not (folder / "config.json").exists():
            write_checkpoint(folder, args.size)
        print_header(str(folder / "config.json"), threads=args.threads, rounds=args.rounds)
        for preset in args.presets.split(","):
            measure(folder, (args.output or Path(temporary)) / "bench-convert.gguf", preset, args.threads, args.rounds)


def measure(folder: Path, output: Path, preset: str, threads: int, rounds: int) -> None:
    """Measures one preset and prints its line."""
    tensors = planned(folder, preset)
    alone, runs = [], []
    for _ in range(rounds):
        alone.append(quantiser_alone(tensors, threads))
        runs.append(run(folder, output, preset, threads))
        output.unlink()
    seconds, busy = (min(each[clock] for each in runs) for clock in (0, 1))
    wall_alone, busy_alone = (min(each[clock] for each in alone) for clock in (0, 1))
    peak, idle = max(each[2] for each in runs), runs[0][3]
    megabytes = sum(tensor.elements for tensor in tensors) * 4 / 1e6
    print(f"{preset:<6} {seconds:.1f} s, {megabytes / seconds:.0f} MB/s of F32; processor {busy:.1f} s")
    if any(part.kind != tensor.kind for tensor in tensors if tensor.elements > SLAB for part in tensor.parts):
        print(
            f"       quantiser alone {wall_alone:.1f} s, processor {busy_alone:.1f} s: "
            f"ratio {seconds / wall_alone:.2f}, of processor time {busy / busy_alone:.2f}"
        )
    largest = max(tensor.nbytes for tensor in tensors)
    print(
        f"       peak {peak / 1e6:.0f} MB resident ({idle / 1e6:.0f} MB before the work); "
        f"largest tensor {largest / 1e6:.0f} MB, as F32 {max(each.elements for each in tensors) * 4 / 1e6:.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
