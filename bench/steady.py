"""Steady decoding: what is measured of one text, and of the rounds of one cell of a table.

The prompt, the first token, which needs no forward, and the first cycle, which builds graphs and takes the prompt's end
into the drafter's context, are outside every figure of steady decoding.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, NamedTuple

from ds4py import RequestError, Sampling, Session
from ds4py.cli.replay import first_difference
from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.speculative import Choice, Cycle, Speculation

SPAN_WORDS = 12


class Config(NamedTuple):
    """How to decode.

    Attributes:
        name: the configuration's name on the command line.
        draft: who proposes.
        drafted: whether it runs in the engine that has the drafter.
        draft_length: how many proposals a cycle verifies, at most, or "auto".
    """

    name: str
    draft: Choice
    drafted: bool
    draft_length: int | str


def configuration(name: str, block: int | None) -> Config:
    """Returns the configuration of a name; `block` is the drafter's, None without one.

    Raises RequestError for a name that there is not, and for one that the drafter cannot do.
    """
    found = re.fullmatch(r"plain|dspark0|auto|(lookup|dspark)([1-9]|1[0-5])?", name)
    if found is None:
        raise RequestError(
            f"configuration {name!r}: wanted plain, auto, dspark, dspark0, lookup, or dspark or lookup with a "
            "draft length such as dspark3"
        )
    drafted = name.startswith(("dspark", "auto"))
    draft_length = 0 if name == "dspark0" else int(found[2]) if found[2] else MAX_DRAFT_LENGTH
    if drafted and block is None:
        raise RequestError(f"configuration {name!r}: there is no drafter; give one with -md, or leave it out")
    if drafted and found[2] and draft_length > (block or 0):
        raise RequestError(f"configuration {name!r}: the drafter proposes {block} tokens, wanted no more than these")
    if name == "auto":
        return Config(name, "auto", drafted, "auto")
    choice: Choice = "off" if name == "plain" else "dspark" if drafted else "lookup"
    return Config(name, choice, drafted, draft_length)


class Step(NamedTuple):
    """What one cycle added, and its time."""

    tokens: int
    seconds: float


@dataclass(frozen=True)
class Text:
    """One generation.

    Attributes:
        tokens: all of them.
        steps: of steady decoding, in order.
        cycles: the same steps' cycles.
        finish: "length" or "stop".
        prompt_rate: prompt tokens a second.
    """

    tokens: tuple[int, ...]
    steps: tuple[Step, ...]
    cycles: tuple[Cycle, ...]
    finish: str
    prompt_rate: float

    @property
    def rate(self) -> float:
        """Tokens a second of steady decoding; 0 where there was none."""
        return rate(self.steps)

    def quarters(self) -> Iterator[tuple[list[int], float]]:
        """The tokens of each quarter of steady decoding, and their rate. A step belongs to where it begins."""
        steady = sum(step.tokens for step in self.steps)
        parts: list[list[Step]] = [[], [], [], []]
        done = 0
        for step in self.steps:
            parts[min(4 * done // max(steady, 1), 3)].append(step)
            done += step.tokens
        begin = len(self.tokens) - steady
        for part in parts:
            end = begin + sum(step.tokens for step in part)
            yield list(self.tokens[begin:end]), rate(part)
            begin = end


def rate(steps: Sequence[Step]) -> float:
    """Tokens a second; 0 where there is nothing."""
    seconds = sum(step.seconds for step in steps)
    return sum(step.tokens for step in steps) / seconds if seconds else 0.0


def generate(session: Session, prompt: Sequence[int], config: Config, sampling: Sampling, length: int) -> Text:
    """Generates up to `length` tokens on a session that is emptied first."""
    session.rewind(0)
    pieces = session.generate(
        prompt, max_tokens=length, sampling=sampling, draft=config.draft, draft_length=config.draft_length
    )
    tokens: list[int] = []
    steps = []
    finish = None
    while finish is None:
        begin = time.perf_counter()
        piece = next(pieces)
        steps.append(Step(len(piece.tokens), time.perf_counter() - begin))
        tokens += piece.tokens
        finish = piece.finish_reason
    cycles = session.stats.speculation.cycles
    return Text(tuple(tokens), tuple(steps[2:]), tuple(cycles[1:]), finish, session.stats.prompt_tokens_per_second)


@dataclass(frozen=True)
class Cell:
    """The rounds of one kind of prompt, temperature and configuration. Every round generates with the same seed."""

    kind: str
    temperature: float
    config: str
    rounds: tuple[Text, ...]

    @property
    def tokens(self) -> int:
        """Tokens of steady decoding, a round."""
        return sum(step.tokens for step in self.rounds[-1].steps)

    @property
    def rate(self) -> float:
        """Tokens a second: the median over the rounds."""
        return median(text.rate for text in self.rounds)

    @property
    def seconds(self) -> float:
        """Of a round, at the median rate."""
        return self.tokens / self.rate if self.rate else 0.0

    @property
    def prompt_rate(self) -> float:
        """Prompt tokens a second: the median over the rounds."""
        return median(text.prompt_rate for text in self.rounds)

    @property
    def speculation(self) -> Speculation:
        """Statistics of a round's cycles."""
        return Speculation(self.config, list(self.rounds[-1].cycles))

    def mean_ms(self, part: str) -> float:
        """Milliseconds that a cycle spends in `draft`, `verify` or `accept`: the mean over all cycles and rounds."""
        found = [getattr(cycle, f"{part}_seconds") for text in self.rounds for cycle in text.cycles]
        return 1000 * fmean(found) if found else 0.0

    def as_dict(self, plain: "Cell") -> dict[str, Any]:
        """All of it as plain values; `plain` is the cell to compare with."""
        return {
            "kind": self.kind,
            "temperature": self.temperature,
            "config": self.config,
            "tokens": self.tokens,
            "tokens_per_second": self.rate,
            "rounds": [text.rate for text in self.rounds],
            **compared(self, plain)._asdict(),
            "prompt_tokens_per_second": self.prompt_rate,
            "mean_ms": {part: self.mean_ms(part) for part in ("draft", "verify", "accept")},
            "distinct_4grams": distinct(self.rounds[-1].tokens),
            "finish": self.rounds[-1].finish,
            "speculation": self.speculation.as_dict(),
        }


class Ratio(NamedTuple):
    """A rate over the plain one: of the medians, and the range over the rounds. None where plain has no rate."""

    ratio: float | None
    ratio_least: float | None
    ratio_most: float | None


def compared(cell: Cell, plain: Cell) -> Ratio:
    """A cell beside the plain one of the same kind and temperature. The range always holds the ratio of the medians."""
    pairs = list(zip(cell.rounds, plain.rounds, strict=True))
    if not all(theirs.rate for _, theirs in pairs):
        return Ratio(None, None, None)
    each = [ours.rate / theirs.rate for ours, theirs in pairs]
    return Ratio(cell.rate / plain.rate, min(each), max(each))


class Averages(NamedTuple):
    """Two means of the cells' tokens a second, which differ where the cells do."""

    by_time: float
    """All tokens over all seconds: the mean weighted by time, what somebody waits for."""
    by_tokens: float
    """The mean weighted by tokens. Never less than the other, since fast cells count for more in it."""


def averages(cells: Iterable[Cell]) -> Averages:
    """Over cells with steady decoding; zeros where there is none."""
    found = [(cell.tokens, cell.rate) for cell in cells if cell.rate]
    tokens = sum(count for count, _ in found)
    if not tokens:
        return Averages(0.0, 0.0)
    by_time = tokens / sum(count / each for count, each in found)
    return Averages(by_time, sum(count * each for count, each in found) / tokens)


class Difference(NamedTuple):
    """Where a greedy text leaves that of plain decoding, and how far the two likeliest tokens are apart there."""

    kind: str
    config: str
    at: int
    lead: float


def difference(cell: Cell, plain: Cell, lead: Callable[[Sequence[int]], float]) -> Difference | None:
    """Of the first round that has one; `lead` is asked for the margin after the tokens that are the same."""
    for ours, theirs in zip(cell.rounds, plain.rounds, strict=True):
        at = first_difference(ours.tokens, theirs.tokens)
        if at is not None:
            return Difference(cell.kind, cell.config, at, lead(theirs.tokens[:at]))
    return None


def distinct(tokens: Sequence[int], size: int = 4) -> float | None:
    """The share of n-grams that are not repetitions; None where there are none."""
    grams = list(zip(*(tokens[i:] for i in range(size)), strict=False))
    return len(set(grams)) / len(grams) if grams else None


def repeated_spans(text: str) -> tuple[int, int]:
    """How many spans of 12 words occur more than once, and how often the most frequent one does."""
    words = text.split()
    counts = Counter(tuple(words[i : i + SPAN_WORDS]) for i in range(len(words) - SPAN_WORDS + 1))
    return sum(count > 1 for count in counts.values()), max(counts.values(), default=0)
