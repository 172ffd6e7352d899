"""Holds the results of `peers.py` for one file, and formats them as a table, figures and plain values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, NamedTuple

from must_read import Forward, Target, chance

NAMES = {"llama": "llama.cpp", "ours": "ds4py"}
HEAD = ("| work | llama.cpp | ds4py | ratio | bytes limit |", "|---|---|---|---|---|")


class Work(NamedTuple):
    """A verify of `rows` rows after `depth` positions, or a prompt of `rows` tokens."""

    kind: str
    rows: int
    depth: int = 0

    @property
    def label(self) -> str:
        """The name of the work in the table."""
        if self.kind == "prefill":
            return f"prefill {self.rows}"
        return f"verify {self.rows} row{'s' * (self.rows > 1)} at {self.depth}"


@dataclass(frozen=True)
class Table:
    """The results of all rounds of all works.

    Attributes:
        seconds: by engine ("llama" if there is one, and "ours"), the times of each work, one for each round.
        experts: distinct experts of each work's rows by the names of expert tensors, as far as they are known.
        bandwidths: bytes per second that the memory gave, one for each round.
    """

    target: Target
    seconds: Mapping[str, Mapping[Work, Sequence[float]]]
    experts: Mapping[Work, Mapping[str, int]]
    bandwidths: Sequence[float]

    @property
    def works(self) -> list[Work]:
        """The works in the order of the table."""
        return list(self.seconds["ours"])

    @property
    def bandwidth(self) -> float:
        """The median of the bandwidths."""
        return median(self.bandwidths)

    def median(self, engine: str, work: Work) -> float | None:
        """Returns the median time in seconds, or None for an engine that did not run."""
        return median(self.seconds[engine][work]) if engine in self.seconds else None

    def forward(self, work: Work) -> Forward:
        """Returns the forward of a work, to count the bytes that it must read."""
        return Forward(work.rows, work.depth, self.experts.get(work, {}))

    def limit(self, work: Work) -> float:
        """Returns the seconds in which the memory gives the bytes that the work must read."""
        return self.target.total(self.forward(work)) / self.bandwidth

    def ratio(self, work: Work) -> float | None:
        """Returns the time of llama.cpp over that of ds4py, or None without llama.cpp."""
        theirs, ours = self.median("llama", work), self.median("ours", work)
        return theirs / ours if theirs and ours else None

    def compared(self, above: Work, below: Work) -> dict[str, float]:
        """Returns the time of one work over that of another, for each engine and for the bytes limit."""
        found = {name: self.median(engine, above) for engine, name in NAMES.items()}
        base = {name: self.median(engine, below) for engine, name in NAMES.items()}
        ratios = {name: time / (base[name] or 1) for name, time in found.items() if time}
        return ratios | {"bytes": self.limit(above) / self.limit(below)}

    def distinct(self, work: Work) -> tuple[float, bool]:
        """Returns the distinct experts of a layer that the rows read, and whether the number is measured.

        A number that is not measured is the one expected by chance.
        """
        known = self.experts.get(work)
        if known:
            return fmean(known.values()), True
        hp = self.target.hyperparameters
        return chance(hp.experts, hp.experts_used, work.rows), False

    def as_dict(self) -> dict[str, Any]:
        """Returns plain values. Times are in seconds."""
        return {
            "bandwidths": list(self.bandwidths),
            "works": [
                {
                    **work._asdict(),
                    **{name: self.median(engine, work) for engine, name in NAMES.items()},
                    "ratio": self.ratio(work),
                    "limit": self.limit(work),
                    "bytes": self.target.total(self.forward(work)),
                    "experts": self.distinct(work)[0],
                    "experts_measured": self.distinct(work)[1],
                    "rounds": {NAMES[engine]: list(found[work]) for engine, found in self.seconds.items()},
                }
                for work in self.works
            ],
        }


def lines(table: Table) -> Iterator[str]:
    """Yields the lines of the table in Markdown, and then those of the figures."""
    yield f"bandwidth {table.bandwidth / 1e9:.1f} GB/s; ratio: how many times as fast as llama.cpp"
    yield ""
    yield from HEAD
    for work in table.works:
        ratio = table.ratio(work)
        cells = [ms(table.median("llama", work)), ms(table.median("ours", work)), f"{ratio:.2f}" if ratio else "-"]
        yield f"| {work.label} | {' | '.join(cells)} | {ms(table.limit(work))} |"
    yield ""
    yield from growth(table)
    for work in table.works:
        if work.kind == "prefill":
            rates = {name: table.median(engine, work) for engine, name in NAMES.items()}
            yield f"{work.label}: " + ", ".join(f"{n} {work.rows / t:.1f}" for n, t in rates.items() if t) + " tokens/s"
    yield from shared_experts(table)


def growth(table: Table) -> Iterator[str]:
    """Yields lines on the cost of more rows and of depth."""
    verifies = [work for work in table.works if work.kind == "verify"]
    one = {work.depth: work for work in verifies if work.rows == 1}
    for depth, first in one.items():
        last = max((work for work in verifies if work.depth == depth), key=lambda work: work.rows)
        ratios = table.compared(last, first)
        yield f"V({last.rows - 1})/V(0) at {depth}: " + ", ".join(f"{name} {ratios[name]:.2f}" for name in ratios)
    ours = table.median("ours", one[0]) or 0
    yield f"one row at 0: ds4py takes {ours / table.limit(one[0]):.2f} times its bytes limit"
    for depth in filter(None, one):
        ratios = table.compared(one[0], one[depth])
        yield f"decode at {depth}: " + ", ".join(f"{n} {100 * r:.0f} %" for n, r in ratios.items()) + " of that at 0"


def shared_experts(table: Table) -> Iterator[str]:
    """Yields lines on the distinct experts of a layer that a verify's rows read, beside those expected by chance."""
    hp = table.target.hyperparameters
    for depth in dict.fromkeys(work.depth for work in table.works):
        works = [work for work in table.works if work.kind == "verify" and work.depth == depth]
        found = " ".join(f"{table.distinct(work)[0]:.1f}" for work in works)
        expected = " ".join(f"{chance(hp.experts, hp.experts_used, work.rows):.1f}" for work in works)
        measured = all(table.distinct(work)[1] for work in works)
        what = f"{found}, by chance {expected}" if measured else f"{expected}, by chance: not measured"
        yield f"distinct experts a layer at {depth}, of {hp.experts}: {what}"
    yield f"prompts are taken to read what chance has of {hp.experts} experts"


def ms(seconds: float | None) -> str:
    """Formats milliseconds, or a dash."""
    return "-" if seconds is None else f"{1000 * seconds:.2f} ms"
