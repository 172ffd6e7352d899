"""Divides the time of a verify among its components, for several numbers of rows, beside the bytes that each must read.

Usage: components.py MODEL.gguf [-t THREADS] [--depth 0] [--rows 1,2,3,4,5,6,16] [--rounds 7] [--skew 0] [--json FILE]

The nodes of the graph run one by one, and each is waited for. A node belongs to the component whose weights it reads. A
node that reads none belongs to the component of the nodes that it reads. The nodes together take longer than a verify,
which does not wait for each of them; both times are printed. Times are medians over the rounds. The last table shows
how time and bytes grow from the first number of rows. The JSON also has times by shape and type of matrices.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from arguments import position, positive, row_numbers, share
from bandwidth import Memory
from machine import cpu_model, print_header
from must_read import Forward, Target, chance, measured_experts
from parts import by_matrices, folded, times
from rows import random_ids, verify_rows

import ds4py
from ds4py import RequestError, _native
from ds4py.constants import MAX_ROWS
from ds4py.runtime.threads import default_threads


@dataclass(frozen=True)
class Column:
    """The measurements for one number of rows.

    Attributes:
        whole: seconds of a verify.
        seconds, bytes: of each component that has nodes of its own.
        folded: components whose work other components' nodes do, which have their bytes, too.
        matrices: seconds of the nodes that read matrices, by name, shape and type.
        experts: distinct experts of a layer, and the number expected by chance.
    """

    rows: int
    whole: float
    seconds: Mapping[str, float]
    bytes: Mapping[str, float]
    experts: tuple[float, float]
    folded: Mapping[str, str]
    matrices: Mapping[str, float]

    @property
    def together(self) -> float:
        """The sum of all nodes' times in seconds."""
        return sum(self.seconds.values())

    @property
    def all_bytes(self) -> float:
        """The bytes that the verify must read."""
        return sum(self.bytes.values())


def measure(session: _native.Session, target: Target, args: argparse.Namespace) -> list[Column]:
    """Measures a column for each number of rows. The columns take turns in each round."""
    ids = verify_rows(target.hyperparameters.vocab, MAX_ROWS, args.skew, seed=1)
    whole: dict[int, list[float]] = {rows: [] for rows in args.rows}
    nodes: dict[int, list[list[_native.NodeTime]]] = {rows: [] for rows in args.rows}
    for _ in range(args.rounds):
        for rows in args.rows:
            session.verify(ids[:rows])  # the first verify of a shape builds its graph
            begin = time.perf_counter()
            session.verify(ids[:rows])
            whole[rows].append(time.perf_counter() - begin)
            nodes[rows].append(session.diagnostics.node_times(ids[:rows]))
    return [column(target, session.position, rows, median(whole[rows]), nodes[rows]) for rows in args.rows]


def column(target: Target, depth: int, rows: int, whole: float, rounds: Sequence[list[_native.NodeTime]]) -> Column:
    """Builds a column from the medians of all rounds of one number of rows."""
    found, without = [times(nodes) for nodes in rounds], folded(rounds[-1])
    labelled = [by_matrices(nodes, target.matrices) for nodes in rounds]
    experts = measured_experts(rounds[-1])
    read = dict.fromkeys(found[-1], 0.0)
    for part, size in target.by_component(Forward(rows, depth, experts)).items():
        read[without.get(part, part)] += size
    hp = target.hyperparameters
    expected = chance(hp.experts, hp.experts_used, rows)
    return Column(
        rows=rows,
        whole=whole,
        seconds={part: median(each[part] for each in found) for part in read},
        bytes=read,
        experts=(fmean(experts.values()) if experts else expected, expected),
        folded=without,
        matrices={label: median(each[label] for each in labelled) for label in labelled[-1]},
    )


def show(columns: Sequence[Column], bandwidth: float) -> None:
    """Prints the tables."""
    first = columns[0]
    table("milliseconds, and share", columns, time_cell)
    line("nodes together", [f"{1000 * c.together:.2f}" for c in columns])
    line("verify", [f"{1000 * c.whole:.2f}" for c in columns])
    table(f"MB to read, and GB/s of {bandwidth / 1e9:.1f} that the memory gives", columns, bytes_cell)
    line("verify", [speed(c.all_bytes, c.whole) for c in columns])
    line("distinct experts", [f"{c.experts[0]:.1f}" for c in columns])
    line("by chance", [f"{c.experts[1]:.1f}" for c in columns])
    title = f"time, and bytes, over those of {first.rows} row{'s' * (first.rows > 1)}"
    table(title, columns, lambda column, part: growth_cell(column, first, part))
    line("verify", [f"{ratio(c.whole, first.whole)} {ratio(c.all_bytes, first.all_bytes)}" for c in columns])
    for part, owner in first.folded.items():
        print(f"\n{part}: computed by the nodes of {owner}, and counted there", flush=True)


def table(title: str, columns: Sequence[Column], cell: Callable[[Column, str], str]) -> None:
    """Prints a line for each component, a column for each number of rows."""
    print(f"\n{title}")
    line("rows", [str(column.rows) for column in columns])
    for part in columns[0].seconds:
        line(part, [cell(column, part) for column in columns])


def line(name: str, cells: Sequence[str]) -> None:
    """Prints one line."""
    print(f"{name:21}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def time_cell(column: Column, part: str) -> str:
    """Formats milliseconds, and the share of all nodes' time."""
    return f"{1000 * column.seconds[part]:.2f} {100 * column.seconds[part] / column.together:3.0f}%"


def bytes_cell(column: Column, part: str) -> str:
    """Formats megabytes and their speed, or a dash if nothing is read."""
    return speed(column.bytes[part], column.seconds[part]) if column.bytes[part] else "-"


def growth_cell(column: Column, first: Column, part: str) -> str:
    """Formats time and bytes as multiples of the first column's."""
    return f"{ratio(column.seconds[part], first.seconds[part])} {ratio(column.bytes[part], first.bytes[part])}"


def speed(size: float, seconds: float) -> str:
    """Formats megabytes and GB/s."""
    return f"{size / 1e6:.2f} {ratio(size / 1e9, seconds)}"


def ratio(value: float, base: float) -> str:
    """Formats a ratio, or a dash."""
    return f"{value / base:.2f}" if base else "-"


def checked(path: str, depth: int) -> None:
    """Raises FormatError, and RequestError for a depth beyond what the target was trained for."""
    most = _native.read_hyperparameters(_native.GgufFile.open(path)).context
    if depth + MAX_ROWS > most:
        raise RequestError(f"{path} was trained for {most} positions: give a --depth of {most - MAX_ROWS} or less")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measures, prints, and returns the measurements as plain values with times in seconds.

    Raises what the engine raises.
    """
    checked(args.model, args.depth)
    settings = {name: getattr(args, name) for name in ("threads", "depth", "rounds", "skew")}
    print_header(args.model, **settings)
    model = _native.Model.load(args.model, device="cpu", threads=args.threads)
    session = _native.Session(model, context=args.depth + MAX_ROWS)
    if args.depth:
        session.prefill(random_ids(model.hyperparameters.vocab, args.depth, seed=0))
    memory = Memory(args.threads)
    bandwidth = median(memory.bandwidth() for _ in range(args.rounds))
    columns = measure(session, Target(model.file), args)
    show(columns, bandwidth)
    return {
        "machine": cpu_model(),
        "build": f"ds4py {ds4py.__version__} ({ds4py.__commit__})",
        "file": Path(args.model).name,
        "settings": settings,
        "bandwidth": bandwidth,
        "rows": [vars(column) | {"together": column.together} for column in columns],
    }


def parser() -> argparse.ArgumentParser:
    """Builds the command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("model")
    made.add_argument("-t", "--threads", type=positive, default=default_threads())
    made.add_argument("--depth", type=position, default=0)
    made.add_argument("--rows", type=row_numbers, default=[*range(1, 7), 16])
    made.add_argument("--rounds", type=positive, default=7)
    made.add_argument("--skew", type=share, default=0.0)
    made.add_argument("--json", type=Path, metavar="FILE")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench and returns the exit code."""
    args = parser().parse_args(arguments)
    try:
        if args.json:
            args.json.touch()  # fail before the work if the file cannot be written
        found = run(args)
    except (ds4py.Error, OSError) as error:
        print(f"components.py: error: {error}", file=sys.stderr)
        return 2
    if args.json:
        args.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
