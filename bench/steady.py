"""Measures steady decoding: of one text, and of the rounds of one cell of a table.

Steady decoding leaves out the prompt, the first token and the first cycle. The first token needs no forward. The first
cycle builds graphs and writes the prompt's end into the drafter's context.
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
    """A way to decode: the drafter and the draft length.

    Attributes:
        name: the configuration's name on the command line.
        draft: the choice of drafter.
        drafted: whether it runs in the engine that has the drafter loaded.
        draft_length: the most proposals that a cycle verifies, or "auto".
    """

    name: str
    draft: Choice
    drafted: bool
    draft_length: int | str


def configuration(name: str, block: int | None) -> Config:
    """Returns the configuration of a name. `block` is the number of tokens the drafter proposes, None without one.

    Raises RequestError for an unknown name, and for one that needs a drafter or a larger block.
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
    """The number of tokens that one cycle added, and its time."""

    tokens: int
    seconds: float


@dataclass(frozen=True)
class Text:
    """One generated text.

    Attributes:
        tokens: all generated ids.
        steps: the steps of steady decoding, in order.
        cycles: the cycles of the same steps.
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
        """Tokens a second of steady decoding; 0 without any."""
        return rate(self.steps)

    def quarters(self) -> Iterator[tuple[list[int], float]]:
        """Yields tokens and rate of each quarter of steady decoding. A step is in the quarter where it begins."""
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
    """Returns tokens a second; 0 without steps."""
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
        """Tokens of steady decoding in one round."""
        return sum(step.tokens for step in self.rounds[-1].steps)

    @property
    def rate(self) -> float:
        """Tokens a second: the median over the rounds."""
        return median(text.rate for text in self.rounds)

    @property
    def seconds(self) -> float:
        """Seconds of one round at the median rate."""
        return self.tokens / self.rate if self.rate else 0.0

    @property
    def prompt_rate(self) -> float:
        """Prompt tokens a second: the median over the rounds."""
        return median(text.prompt_rate for text in self.rounds)

    @property
    def speculation(self) -> Speculation:
        """Statistics of the last round's cycles."""
        return Speculation(self.config, list(self.rounds[-1].cycles))

    def mean_ms(self, part: str) -> float:
        """Returns the milliseconds of `draft`, `verify` or `accept` in a cycle: the mean over all cycles and rounds."""
        found = [getattr(cycle, f"{part}_seconds") for text in self.rounds for cycle in text.cycles]
        return 1000 * fmean(found) if found else 0.0

    def as_dict(self, plain: "Cell") -> dict[str, Any]:
        """Returns all figures as plain values; `plain` is the cell to compare with."""
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
    """The ratio of a rate to the plain one: of the medians, and its range over the rounds. None without a plain one."""

    ratio: float | None
    ratio_least: float | None
    ratio_most: float | None


def compared(cell: Cell, plain: Cell) -> Ratio:
    """Compares a cell with plain decoding of the same kind and temperature. The range includes the ratio of medians."""
    pairs = list(zip(cell.rounds, plain.rounds, strict=True))
    if not all(theirs.rate for _, theirs in pairs):
        return Ratio(None, None, None)
    each = [ours.rate / theirs.rate for ours, theirs in pairs]
    return Ratio(cell.rate / plain.rate, min(each), max(each))


class Averages(NamedTuple):
    """Two means of the cells' tokens a second; they differ if the cells do."""

    by_time: float
    """All tokens divided by all seconds: the mean weighted by time, as a user experiences it."""
    by_tokens: float
    """The mean weighted by tokens. It is never less than `by_time`, since fast cells weigh more in it."""


def averages(cells: Iterable[Cell]) -> Averages:
    """Returns the means over all cells with steady decoding; zeros without any."""
    found = [(cell.tokens, cell.rate) for cell in cells if cell.rate]
    tokens = sum(count for count, _ in found)
    if not tokens:
        return Averages(0.0, 0.0)
    by_time = tokens / sum(count / each for count, each in found)
    return Averages(by_time, sum(count * each for count, each in found) / tokens)


class Difference(NamedTuple):
    """The position where a greedy text first differs from plain decoding, and the lead of the likeliest token there.

    `lead` is the difference of the two largest logits.
    """

    kind: str
    config: str
    at: int
    lead: float


def difference(cell: Cell, plain: Cell, lead: Callable[[Sequence[int]], float]) -> Difference | None:
    """Returns the difference in the first round that has one, else None.

    `lead` returns the difference of the two largest logits after some tokens; it gets those that both texts share.
    """
    for ours, theirs in zip(cell.rounds, plain.rounds, strict=True):
        at = first_difference(ours.tokens, theirs.tokens)
        if at is not None:
            return Difference(cell.kind, cell.config, at, lead(theirs.tokens[:at]))
    return None


def distinct(tokens: Sequence[int], size: int = 4) -> float | None:
    """Returns the number of distinct n-grams divided by that of all n-grams; None without any."""
    grams = list(zip(*(tokens[i:] for i in range(size)), strict=False))
    return len(set(grams)) / len(grams) if grams else None


def repeated_spans(text: str) -> tuple[int, int]:
    """Returns how many spans of 12 words occur more than once, and the count of the most frequent span."""
    words = text.split()
    counts = Counter(tuple(words[i : i + SPAN_WORDS]) for i in range(len(words) - SPAN_WORDS + 1))
    return sum(count > 1 for count in counts.values()), max(counts.values(), default=0)
