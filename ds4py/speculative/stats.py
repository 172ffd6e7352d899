"""What speculation did: widths, acceptance, and where the time went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import NamedTuple

from ds4py.json_types import Json


class Cycle(NamedTuple):
    """One cycle: k proposals verified, n accepted, and seconds."""

    width: int
    accepted: int
    draft_seconds: float  # 0 where nothing was drafted
    verify_seconds: float
    accept_seconds: float
    confidence: tuple[float, ...] = ()  # the drafter's, of the verified proposals
    drafter: str = ""  # who was asked for proposals
    tried: bool = False  # not expected to pay: there to find out, or to learn a cost
    plain_seconds: float = 0.0  # what a plain step costs there; 0 where that is not known

    @property
    def emitted(self) -> int:
        """Tokens: the accepted proposals and the one after them."""
        return self.accepted + 1

    @property
    def seconds(self) -> float:
        """All of the cycle."""
        return self.draft_seconds + self.verify_seconds + self.accept_seconds


class Milliseconds(NamedTuple):
    """Times of the cycles in which something took place; zeros when it never did."""

    median: float
    total: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Milliseconds:
        """From seconds, leaving out the zeros."""
        times = [1000 * each for each in seconds if each]
        return cls(median(times), sum(times)) if times else cls(0.0, 0.0)


@dataclass
class Speculation:
    """The cycles of one request. Lists by position begin with the first proposal.

    Three numbers are called acceptance elsewhere, and are kept apart here: `acceptance`, `survival`, and
    `emitted_per_cycle`. With the same survival a at every position and k proposals, emitted_per_cycle is the sum of a^i
    for i from 0 to k, and acceptance (emitted_per_cycle - 1) / k.
    """

    drafter: str = "off"
    cycles: list[Cycle] = field(default_factory=list, repr=False)

    @property
    def plain_cycles(self) -> int:
        """Cycles that verified no proposal."""
        return sum(cycle.width == 0 for cycle in self.cycles)

    @property
    def drafted(self) -> int:
        """Proposals that were verified."""
        return sum(cycle.width for cycle in self.cycles)

    @property
    def accepted(self) -> int:
        """Proposals that were accepted."""
        return sum(cycle.accepted for cycle in self.cycles)

    @property
    def acceptance(self) -> float:
        """Accepted of all verified proposals, those behind a rejected one included."""
        return ratio(self.accepted, self.drafted)

    @property
    def survival(self) -> float:
        """Accepted of the proposals that were judged: those with nothing rejected before them."""
        rejections = sum(cycle.accepted < cycle.width for cycle in self.cycles)
        return ratio(self.accepted, self.accepted + rejections)

    @property
    def emitted_per_cycle(self) -> float:
        """Accepted proposals and the token after them, a cycle."""
        return ratio(self.accepted + len(self.cycles), len(self.cycles))

    @property
    def widths(self) -> list[int]:
        """Cycles by width, from 0."""
        return histogram(cycle.width for cycle in self.cycles)

    @property
    def accepted_histogram(self) -> list[int]:
        """Cycles by accepted proposals, from 0."""
        return histogram(cycle.accepted for cycle in self.cycles)

    @property
    def verified_by_position(self) -> list[int]:
        """How often a proposal was verified."""
        return at_least(self.widths)

    @property
    def accepted_by_position(self) -> list[int]:
        """How often a proposal was accepted."""
        found = at_least(self.accepted_histogram)
        return found + [0] * (len(self.verified_by_position) - len(found))

    @property
    def acceptance_by_position(self) -> list[float]:
        """Accepted of the cycles that verified the position."""
        return [ratio(a, v) for a, v in zip(self.accepted_by_position, self.verified_by_position, strict=True)]

    @property
    def survival_by_position(self) -> list[float]:
        """Accepted of the cycles that judged the position: what the drafter's confidence foretells."""
        return [ratio(a, len(self._judged(i))) for i, a in enumerate(self.accepted_by_position)]

    @property
    def confidence_by_position(self) -> list[float]:
        """The drafter's mean confidence in the same cycles; empty without a confidence head."""
        found = [[c.confidence[i] for c in self._judged(i) if c.confidence] for i in range(len(self.widths) - 1)]
        return [fmean(each) if each else 0.0 for each in found] if any(found) else []

    @property
    def drafters(self) -> dict[str, int]:
        """Cycles by who was asked for proposals."""
        return dict(Counter(cycle.drafter for cycle in self.cycles if cycle.drafter))

    @property
    def tried_ms(self) -> float:
        """Time lost to finding out: what tries took beyond plain decoding of the same tokens."""
        tried = (each for each in self._priced if each.tried)
        return 1000 * sum(max(0.0, each.seconds - each.emitted * each.plain_seconds) for each in tried)

    @property
    def tokens_per_second(self) -> float:
        """Of the cycles whose plain cost is known, and alone: without what comes between them."""
        return ratio(sum(each.emitted for each in self._priced), sum(each.seconds for each in self._priced))

    @property
    def plain_tokens_per_second(self) -> float:
        """What plain decoding would have had in the same cycles, by the engine's median costs."""
        seconds = sum(each.emitted * each.plain_seconds for each in self._priced)
        return ratio(sum(each.emitted for each in self._priced), seconds)

    @property
    def draft_ms(self) -> Milliseconds:
        """Time of the drafts."""
        return Milliseconds.of(cycle.draft_seconds for cycle in self.cycles)

    @property
    def verify_ms(self) -> Milliseconds:
        """Time of the target's forwards."""
        return Milliseconds.of(cycle.verify_seconds for cycle in self.cycles)

    @property
    def accept_ms(self) -> Milliseconds:
        """Time of judging the proposals and drawing what follows them."""
        return Milliseconds.of(cycle.accept_seconds for cycle in self.cycles)

    @property
    def verify_ms_by_width(self) -> list[float]:
        """Median time of a forward by width, from 0; 0 for a width that was not used."""

        def used(width: int) -> Iterable[float]:
            return (cycle.verify_seconds for cycle in self.cycles if cycle.width == width)

        return [Milliseconds.of(used(width)).median for width in range(len(self.widths))]

    def as_dict(self) -> Json:
        """All of it as plain values; times in milliseconds."""
        return {
            "drafter": self.drafter,
            "cycles": len(self.cycles),
            "drafters": self.drafters,
            **{name: getattr(self, name) for name in COUNTS + RATES + LISTS},
            **{name: getattr(self, name)._asdict() for name in TIMES},
        }

    @property
    def _priced(self) -> list[Cycle]:
        return [cycle for cycle in self.cycles if cycle.plain_seconds]

    def _judged(self, position: int) -> list[Cycle]:
        return [cycle for cycle in self.cycles if cycle.width > position and cycle.accepted >= position]


COUNTS = ("plain_cycles", "drafted", "accepted")
RATES = ("acceptance", "survival", "emitted_per_cycle", "tried_ms", "tokens_per_second", "plain_tokens_per_second")
LISTS = (
    "widths",
    "accepted_histogram",
    "verified_by_position",
    "accepted_by_position",
    "acceptance_by_position",
    "survival_by_position",
    "confidence_by_position",
    "verify_ms_by_width",
)
TIMES = ("draft_ms", "verify_ms", "accept_ms")


def ratio(part: float, whole: float) -> float:
    """0 where there is nothing."""
    return part / whole if whole else 0.0


def histogram(values: Iterable[int]) -> list[int]:
    """How often 0, 1, ... occur, as far as the largest."""
    counts = Counter(values)
    return [counts[value] for value in range(max(counts, default=-1) + 1)]


def at_least(counts: list[int]) -> list[int]:
    """From counts of 0, 1, ...: how often 1 or more, 2 or more, ..."""
    return [sum(counts[value:]) for value in range(1, len(counts))]
