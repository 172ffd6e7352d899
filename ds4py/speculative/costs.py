"""Measured times of cycles on an engine: medians of real steps, by depth (docs/dspark.md section 6.2)."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.deprecated import renamed_attributes
from ds4py.errors import FormatError, RequestError
from ds4py.json_types import Json
from ds4py.speculative.cost_model import check_times, monotone

SAMPLES = 31
"""The latest steps whose median is a cost: enough to ignore a stall, few enough to follow a machine that slows down."""
FIRST_DEPTH = 512
"""Depths below this are one class; above, each doubling is another."""
SURE = 3
"""The steps from which on a cost counts as known: one stall among them does not matter."""
OWN = ("dspark",)
"""The drafters whose costs are kept; others belong to whoever brings them."""
REFRESH = 32
"""The number of steps after which a curve is made anew."""


@dataclass(frozen=True)
class Curve:
    """The times of cycles at some depth, in seconds.

    Attributes:
        verify: V(0), V(1), ...: the time of a verify by draft length; none is below the one before it (D56).
        draft: D, the time of a draft; 0 for proposals that cost nothing.
    """

    verify: tuple[float, ...]
    draft: float

    @property
    def plain(self) -> float:
        """V(0), the time of a plain step, which is a verify of the anchor alone."""
        return self.verify[0]

    def beyond_plain(self, draft_length: int) -> float:
        """Returns the seconds that a cycle of this draft length takes beyond a plain step."""
        return self.draft + self.verify[draft_length] - self.plain


class Median:
    """The median time of the latest steps of one kind."""

    def __init__(self, known: float | None = None) -> None:
        self._times: deque[float] = deque([] if known is None else [known] * SURE, maxlen=SAMPLES)

    def add(self, seconds: float) -> bool:
        """Counts a step; returns whether the cost is known from this step on."""
        self._times.append(seconds)
        return len(self._times) == SURE

    @property
    def sure(self) -> bool:
        """Whether there are enough steps for a cost."""
        return len(self._times) >= SURE

    @property
    def seconds(self) -> float | None:
        """The median in seconds; None with too few steps."""
        return median(self._times) if self.sure else None


class Costs:
    """The costs of an engine, learned from every cycle of all its sessions; any thread may add to them.

    Attributes:
        steps: the number of verifies that were counted.
    """

    if not TYPE_CHECKING:
        __getattr__ = renamed_attributes({"unknown": "unmeasured"})

    def __init__(self) -> None:
        self._verify: dict[int, dict[int, Median]] = defaultdict(lambda: defaultdict(Median))
        self._draft: dict[str, dict[int, Median]] = defaultdict(lambda: defaultdict(Median))
        self._curves: dict[tuple[str | None, int], tuple[int, Curve | None]] = {}
        self._sure: set[int] = set()  # draft lengths whose cost is known at some depth
        self._latest: dict[int, int] = defaultdict(int)  # by draft length: the number of its last step
        self._lock = threading.RLock()  # an engine may be finalised anywhere, also in here
        self.steps = 0

    def add_verify(self, depth: int, draft_length: int, seconds: float) -> None:
        """Counts the verify of a cycle, acceptance included; `depth` is the number of positions before it."""
        with self._lock:
            sure_now = self._verify[bucket_of(depth)][draft_length].add(seconds)
            self.steps += 1
            self._latest[draft_length] = self.steps
            if sure_now:
                self._sure.add(draft_length)
                self._curves.clear()

    def add_draft(self, depth: int, drafter: str, seconds: float) -> None:
        """Counts a draft of the drafter with this name."""
        with self._lock:
            self._draft[drafter][bucket_of(depth)].add(seconds)

    def curve(self, depth: int, drafter: str | None) -> Curve | None:
        """Returns the costs with a drafter, for draft lengths up to 15; None while too little is known.

        A `drafter` of None is one that costs nothing. A draft length that was not measured is interpolated between its
        neighbours. A depth that was not measured is like the one with the most measured draft lengths, except for what
        its own steps have shown.
        """
        key = (drafter, bucket_of(depth))
        made, curve = self._curves.get(key, (-REFRESH, None))
        if self.steps - made >= REFRESH or curve is None:
            with self._lock:
                curve = self._made(*key)
            self._curves[key] = self.steps, curve
        return curve

    def unmeasured(self, draft_lengths: range) -> int | None:
        """Returns the largest of these draft lengths whose cost is known at no depth; None where all are known."""
        if self._sure.issuperset(draft_lengths):
            return None
        return next((draft_length for draft_length in reversed(draft_lengths) if draft_length not in self._sure), None)

    def oldest(self, limit: int) -> int:
        """Returns the draft length from 1 to `limit` that was measured longest ago; 0 where `limit` is 0."""
        return min(range(1, limit + 1), key=self._latest.__getitem__, default=0)

    def _made(self, drafter: str | None, bucket: int) -> Curve | None:
        known = {b: found for b in self._verify if 0 in (found := self._known(b))}
        if not known or (drafter is not None and not self._draft_known(drafter)):
            return None
        richest = max(known, key=lambda b: (len(known[b]), -abs(b - bucket)))
        points, own = dict(known[richest]), self._known(bucket)
        if 0 in own:  # the depth's own share is the same for every draft length
            points = {k: seconds + own[0] - known[richest][0] for k, seconds in points.items()}
        verify = monotone(filled({**points, **own}))
        return Curve(tuple(verify), self._nearest_draft(drafter, bucket))

    def _known(self, bucket: int) -> dict[int, float]:
        found = {draft_length: each.seconds for draft_length, each in self._verify[bucket].items()}
        return {draft_length: seconds for draft_length, seconds in found.items() if seconds is not None}

    def _draft_known(self, drafter: str) -> dict[int, float]:
        found = {bucket: each.seconds for bucket, each in self._draft[drafter].items()}
        return {bucket: seconds for bucket, seconds in found.items() if seconds is not None}

    def _nearest_draft(self, drafter: str | None, bucket: int) -> float:
        if drafter is None:
            return 0.0
        known = self._draft_known(drafter)
        return known[min(known, key=lambda b: abs(b - bucket))]

    def as_dict(self) -> Json:
        """Returns the known costs of the engine's own drafters as plain values, in milliseconds, for `from_dict`."""
        with self._lock:
            return {
                "verify_ms": {str(b): _milliseconds(self._known(b)) for b in self._verify},
                "draft_ms": {name: _milliseconds(self._draft_known(name)) for name in self._draft if name in OWN},
            }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Costs:
        """Makes costs of what `as_dict` returned. Raises FormatError for values that are no costs."""
        costs = cls()
        try:
            for bucket, points in values["verify_ms"].items():
                costs._verify[int(bucket)].update({int(k): Median(_time(ms)) for k, ms in points.items()})
                costs._sure.update(costs._verify[int(bucket)])
            for name, points in values["draft_ms"].items():
                costs._draft[str(name)].update({int(b): Median(_time(ms)) for b, ms in points.items()})
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError, RequestError) as error:
            raise FormatError(f"these are not costs: {error!r}") from None
        return costs


def bucket_of(depth: int) -> int:
    """Returns the number of a depth's class: 0 below FIRST_DEPTH, then one more for each doubling."""
    return (depth // FIRST_DEPTH).bit_length()


def filled(points: Mapping[int, float], limit: int = MAX_DRAFT_LENGTH) -> list[float]:
    """Returns the times of draft lengths 0 to `limit` from those in `points`, which has 0.

    Times between two known ones lie on a line, and those beyond the last go on with the steepest slope.
    """
    known = sorted(points)
    slopes = ((points[b] - points[a]) / (b - a) for a, b in pairwise(known))
    steepest = max(slopes, default=points[known[0]])
    found = []
    for k in range(limit + 1):
        below = max(each for each in known if each <= k)
        above = min((each for each in known if each >= k), default=None)
        slope = max(steepest, 0.0)
        if above is not None and above > below:
            slope = (points[above] - points[below]) / (above - below)
        found.append(points[below] + slope * (k - below))
    return found


def _milliseconds(points: Mapping[int, float]) -> dict[str, float]:
    return {str(key): 1000 * seconds for key, seconds in points.items()}


def _time(milliseconds: float) -> float:
    seconds = float(milliseconds) / 1000
    check_times([seconds], 0.0, seconds)
    return seconds
