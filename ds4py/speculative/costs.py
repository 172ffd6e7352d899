"""What cycles cost on this engine: medians of real steps, by depth."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from ds4py.errors import FormatError, RequestError
from ds4py.json_types import Json
from ds4py.speculative.expected import checked, monotone

SAMPLES = 31
"""Steps whose median is a cost: enough to forget a stall, few enough to follow a machine that slows down."""
FIRST_DEPTH = 512
"""Depths below this are alike; above, each doubling is on its own."""
SURE = 3
"""Steps that make a cost: one stall among them does not matter."""
OWN = ("dspark",)
"""Drafters whose costs are worth keeping; others belong to whoever brings them."""
REFRESH = 32
"""Steps after which a curve is made anew."""


@dataclass(frozen=True)
class Curve:
    """Seconds at some depth.

    Attributes:
        verify: by width, from 0 (the anchor alone); no width is cheaper than a smaller one.
        draft: of a block; 0 for proposals that cost nothing.
    """

    verify: tuple[float, ...]
    draft: float

    @property
    def plain(self) -> float:
        """Seconds of a plain step: a verify of the anchor alone is one."""
        return self.verify[0]

    def beyond_plain(self, width: int) -> float:
        """Seconds that a cycle of so many proposals adds to a plain step."""
        return self.draft + self.verify[width] - self.plain


class Median:
    """The latest steps of one kind."""

    def __init__(self, known: float | None = None) -> None:
        self._times: deque[float] = deque([] if known is None else [known] * SURE, maxlen=SAMPLES)

    def add(self, seconds: float) -> bool:
        """Counts a step; whether it is the one that makes the cost sure."""
        self._times.append(seconds)
        return len(self._times) == SURE

    @property
    def sure(self) -> bool:
        """Whether there are enough steps."""
        return len(self._times) >= SURE

    @property
    def seconds(self) -> float | None:
        """The median, or None with too few steps."""
        return median(self._times) if self.sure else None


class Costs:
    """The costs of an engine, learned from every cycle of all its sessions; any thread may add to them."""

    def __init__(self) -> None:
        self._verify: dict[int, dict[int, Median]] = defaultdict(lambda: defaultdict(Median))
        self._draft: dict[str, dict[int, Median]] = defaultdict(lambda: defaultdict(Median))
        self._curves: dict[tuple[str | None, int], tuple[int, Curve | None]] = {}
        self._sure: set[int] = set()  # widths whose cost is known at some depth
        self._latest: dict[int, int] = defaultdict(int)  # by width: the number of its last step
        self._lock = threading.RLock()  # what ends an engine may run anywhere, also in here
        self.steps = 0
        """Verifies that were counted."""

    def add_verify(self, depth: int, width: int, seconds: float) -> None:
        """Counts the verify of a cycle, and the judging that follows it, at a depth: the tokens before it."""
        with self._lock:
            sure_now = self._verify[bucket_of(depth)][width].add(seconds)
            self.steps += 1
            self._latest[width] = self.steps
            if sure_now:
                self._sure.add(width)
                self._curves.clear()

    def add_draft(self, depth: int, drafter: str, seconds: float) -> None:
        """Counts a draft."""
        with self._lock:
            self._draft[drafter][bucket_of(depth)].add(seconds)

    def curve(self, depth: int, drafter: str | None) -> Curve | None:
        """The costs with a drafter (None: one that costs nothing), for widths up to 15; None while too little is known.

        A width that was not measured lies between its neighbours; a depth that was not is as the nearest, but for what
        its own steps have shown.
        """
        key = (drafter, bucket_of(depth))
        made, curve = self._curves.get(key, (-REFRESH, None))
        if self.steps - made >= REFRESH or curve is None:
            with self._lock:
                curve = self._made(*key)
            self._curves[key] = self.steps, curve
        return curve

    def unknown(self, widths: range) -> int | None:
        """The largest of these widths whose cost is known at no depth; None where all are."""
        if self._sure.issuperset(widths):
            return None
        return next((width for width in reversed(widths) if width not in self._sure), None)

    def oldest(self, most: int) -> int:
        """The width from 1 to `most` that was measured longest ago."""
        return min(range(1, most + 1), key=self._latest.__getitem__, default=0)

    def _made(self, drafter: str | None, bucket: int) -> Curve | None:
        known = {b: found for b in self._verify if 0 in (found := self._known(b))}
        if not known or (drafter is not None and not self._draft_known(drafter)):
            return None
        richest = max(known, key=lambda b: (len(known[b]), -abs(b - bucket)))
        points, own = dict(known[richest]), self._known(bucket)
        if 0 in own:  # the depth's own share is the same for every width
            points = {k: seconds + own[0] - known[richest][0] for k, seconds in points.items()}
        verify = monotone(filled({**points, **own}))
        return Curve(tuple(verify), self._nearest_draft(drafter, bucket))

    def _known(self, bucket: int) -> dict[int, float]:
        found = {width: each.seconds for width, each in self._verify[bucket].items()}
        return {width: seconds for width, seconds in found.items() if seconds is not None}

    def _draft_known(self, drafter: str) -> dict[int, float]:
        found = {bucket: each.seconds for bucket, each in self._draft[drafter].items()}
        return {bucket: seconds for bucket, seconds in found.items() if seconds is not None}

    def _nearest_draft(self, drafter: str | None, bucket: int) -> float:
        if drafter is None:
            return 0.0
        known = self._draft_known(drafter)
        return known[min(known, key=lambda b: abs(b - bucket))]

    def as_dict(self) -> Json:
        """What is known of the engine itself, as plain values in milliseconds; `from_dict` reads it."""
        with self._lock:
            return {
                "verify_ms": {str(b): _milliseconds(self._known(b)) for b in self._verify},
                "draft_ms": {name: _milliseconds(self._draft_known(name)) for name in self._draft if name in OWN},
            }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Costs:
        """Costs that were kept. Raises FormatError where these are none."""
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
    """The number of a depth's class: 0 below FIRST_DEPTH, then one for each doubling."""
    return (depth // FIRST_DEPTH).bit_length()


def filled(points: Mapping[int, float], most: int = 15) -> list[float]:
    """Widths 0 to `most` from some, with 0 among them: lines between, and beyond the last by the steepest of them."""
    known = sorted(points)
    slopes = ((points[b] - points[a]) / (b - a) for a, b in pairwise(known))
    steepest = max(slopes, default=points[known[0]])
    found = []
    for k in range(most + 1):
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
    checked([seconds], 0.0, seconds)
    return seconds
