"""Statistics of speculation: draft lengths, acceptance and times."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, NamedTuple

from ds4py.deprecated import renamed_attributes
from ds4py.json_types import Json


class Cycle(NamedTuple):
    """One cycle.

    Attributes:
        draft_length: the number of verified proposals, k.
        accepted: the number of accepted proposals, n.
        draft_seconds: the time of the draft; 0 where nothing was drafted.
        verify_seconds: the time of the target's forward.
        accept_seconds: the time of acceptance.
        confidence: the drafter's confidences of the verified proposals; empty where it has none.
        drafter: the name of the drafter that was asked; empty where none was.
        tried: whether the cycle was not expected to pay, and was there to learn the acceptance or a cost.
        plain_seconds: the time of a plain step at this depth; 0 where it is not known.
    """

    draft_length: int
    accepted: int
    draft_seconds: float
    verify_seconds: float
    accept_seconds: float
    confidence: tuple[float, ...] = ()
    drafter: str = ""
    tried: bool = False
    plain_seconds: float = 0.0

    @property
    def width(self) -> int:
        """The old name of `draft_length`."""
        warnings.warn("Cycle.width is now Cycle.draft_length", DeprecationWarning, stacklevel=2)
        return self.draft_length

    @property
    def emitted(self) -> int:
        """The number of emitted tokens: the accepted proposals and the one after them."""
        return self.accepted + 1

    @property
    def seconds(self) -> float:
        """The time of the whole cycle."""
        return self.draft_seconds + self.verify_seconds + self.accept_seconds


class Milliseconds(NamedTuple):
    """The median and the total time of a step over the cycles that had it; zeros where none had."""

    median: float
    total: float

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Milliseconds:
        """Makes it of times in seconds; zeros are left out."""
        times = [1000 * each for each in seconds if each]
        return cls(median(times), sum(times)) if times else cls(0.0, 0.0)


@dataclass
class Speculation:
    """The cycles of one request. Lists by position begin with the first proposal.

    Three numbers are called acceptance in reports, and are told apart here: `acceptance`, `survival` and
    `emitted_per_cycle` (D55). With the same survival a at every position and k proposals, emitted_per_cycle is the sum
    of a^i for i from 0 to k, and acceptance is (emitted_per_cycle - 1) / k.
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes({"widths": "draft_lengths", "verify_ms_by_width": "verify_ms_by_draft_length"})

    drafter: str = "off"
    cycles: list[Cycle] = field(default_factory=list, repr=False)

    @property
    def plain_cycles(self) -> int:
        """The number of cycles that verified no proposal."""
        return sum(cycle.draft_length == 0 for cycle in self.cycles)

    @property
    def drafted(self) -> int:
        """The number of verified proposals."""
        return sum(cycle.draft_length for cycle in self.cycles)

    @property
    def accepted(self) -> int:
        """The number of accepted proposals."""
        return sum(cycle.accepted for cycle in self.cycles)

    @property
    def acceptance(self) -> float:
        """The share of accepted proposals of all verified ones, those behind a rejected one included."""
        return ratio(self.accepted, self.drafted)

    @property
    def survival(self) -> float:
        """The share of accepted proposals of the decided ones, which have no rejected one before them."""
        rejections = sum(cycle.accepted < cycle.draft_length for cycle in self.cycles)
        return ratio(self.accepted, self.accepted + rejections)

    @property
    def emitted_per_cycle(self) -> float:
        """The mean number of tokens that a cycle emits."""
        return ratio(self.accepted + len(self.cycles), len(self.cycles))

    @property
    def draft_lengths(self) -> list[int]:
        """The number of cycles by draft length, from 0 on."""
        return histogram(cycle.draft_length for cycle in self.cycles)

    @property
    def accepted_histogram(self) -> list[int]:
        """The number of cycles by accepted proposals, from 0 on."""
        return histogram(cycle.accepted for cycle in self.cycles)

    @property
    def verified_by_position(self) -> list[int]:
        """The number of cycles that verified a proposal at each position."""
        return at_least(self.draft_lengths)

    @property
    def accepted_by_position(self) -> list[int]:
        """The number of cycles that accepted a proposal at each position."""
        found = at_least(self.accepted_histogram)
        return found + [0] * (len(self.verified_by_position) - len(found))

    @property
    def acceptance_by_position(self) -> list[float]:
        """The share of cycles that accepted the position, of those that verified it."""
        return [ratio(a, v) for a, v in zip(self.accepted_by_position, self.verified_by_position, strict=True)]

    @property
    def survival_by_position(self) -> list[float]:
        """The share of cycles that accepted the position, of those that decided on it; confidences estimate this."""
        return [ratio(a, len(self._decided(i))) for i, a in enumerate(self.accepted_by_position)]

    @property
    def confidence_by_position(self) -> list[float]:
        """The mean confidence of the position in the cycles that decided on it; empty without a confidence head."""
        found = [
            [c.confidence[i] for c in self._decided(i) if c.confidence] for i in range(len(self.draft_lengths) - 1)
        ]
        return [fmean(each) if each else 0.0 for each in found] if any(found) else []

    @property
    def drafters(self) -> dict[str, int]:
        """The number of cycles by the name of the drafter that was asked."""
        return dict(Counter(cycle.drafter for cycle in self.cycles if cycle.drafter))

    @property
    def tried_ms(self) -> float:
        """The milliseconds that tries took beyond plain decoding of the same tokens."""
        tried = (each for each in self._priced if each.tried)
        return 1000 * sum(max(0.0, each.seconds - each.emitted * each.plain_seconds) for each in tried)

    @property
    def tokens_per_second(self) -> float:
        """The tokens a second inside the cycles whose plain time is known."""
        return ratio(sum(each.emitted for each in self._priced), sum(each.seconds for each in self._priced))

    @property
    def plain_tokens_per_second(self) -> float:
        """The tokens a second of plain decoding in the same cycles, by the engine's median costs."""
        seconds = sum(each.emitted * each.plain_seconds for each in self._priced)
        return ratio(sum(each.emitted for each in self._priced), seconds)

    @property
    def draft_ms(self) -> Milliseconds:
        """The time of the drafts."""
        return Milliseconds.of(cycle.draft_seconds for cycle in self.cycles)

    @property
    def verify_ms(self) -> Milliseconds:
        """The time of the target's forwards."""
        return Milliseconds.of(cycle.verify_seconds for cycle in self.cycles)

    @property
    def accept_ms(self) -> Milliseconds:
        """The time of acceptance, in which the token after the proposals is drawn, too."""
        return Milliseconds.of(cycle.accept_seconds for cycle in self.cycles)

    @property
    def verify_ms_by_draft_length(self) -> list[float]:
        """The median milliseconds of a forward by draft length, from 0 on; 0 for one that was not used."""

        def used(draft_length: int) -> Iterable[float]:
            return (cycle.verify_seconds for cycle in self.cycles if cycle.draft_length == draft_length)

        return [Milliseconds.of(used(draft_length)).median for draft_length in range(len(self.draft_lengths))]

    def as_dict(self) -> Json:
        """Returns everything as plain values; times are in milliseconds."""
        return {
            "drafter": self.drafter,
            "cycles": len(self.cycles),
            "drafters": self.drafters,
            **{name: getattr(self, name) for name in COUNTS + RATES},
            **{name: getattr(self, attribute) for name, attribute in LISTS.items()},
            **{name: getattr(self, name)._asdict() for name in TIMES},
        }

    @property
    def _priced(self) -> list[Cycle]:
        return [cycle for cycle in self.cycles if cycle.plain_seconds]

    def _decided(self, position: int) -> list[Cycle]:
        return [cycle for cycle in self.cycles if cycle.draft_length > position and cycle.accepted >= position]


COUNTS = ("plain_cycles", "drafted", "accepted")
RATES = ("acceptance", "survival", "emitted_per_cycle", "tried_ms", "tokens_per_second", "plain_tokens_per_second")
LISTS = {
    "widths": "draft_lengths",
    "accepted_histogram": "accepted_histogram",
    "verified_by_position": "verified_by_position",
    "accepted_by_position": "accepted_by_position",
    "acceptance_by_position": "acceptance_by_position",
    "survival_by_position": "survival_by_position",
    "confidence_by_position": "confidence_by_position",
    "verify_ms_by_width": "verify_ms_by_draft_length",
}
"""Attributes that are lists, by the keys of `as_dict`. Two keys are older than the names, because reports read them."""
TIMES = ("draft_ms", "verify_ms", "accept_ms")


def ratio(part: float, whole: float) -> float:
    """Returns part / whole; 0 where whole is 0."""
    return part / whole if whole else 0.0


def histogram(values: Iterable[int]) -> list[int]:
    """Returns how often 0, 1, ... occur, up to the largest value."""
    counts = Counter(values)
    return [counts[value] for value in range(max(counts, default=-1) + 1)]


def at_least(counts: list[int]) -> list[int]:
    """Returns how often 1 or more, 2 or more, ... occur, from the counts of 0, 1, ..."""
    return [sum(counts[value:]) for value in range(1, len(counts))]
