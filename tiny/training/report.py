"""Reports the progress of a training, a line every few steps, to a file and to stderr."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from .processes import is_first

EVERY = 25


class Report:
    """Collects means of numbers, with speed and time left."""

    def __init__(self, path: Path, total: int, done: int) -> None:
        self.path, self.total, self.first, self.begin = path, total, done, time.monotonic()
        self.sums: dict[str, float] = {}
        self.count = 0

    def add(self, step: int, done: int, **values: float) -> None:
        """Adds a step after which `done` of `total` units of work are done."""
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.count += 1
        if self.count == EVERY or done >= self.total:
            speed = (done - self.first) / (time.monotonic() - self.begin)
            means = {name: round(value / self.count, 4) for name, value in self.sums.items()}
            self.line({"step": step, "done": done, "speed": round(speed), **means}, (self.total - done) / speed)
            self.sums, self.count = {}, 0

    def line(self, values: dict[str, object], left: float | None = None) -> None:
        """Writes the values. `left` is in seconds."""
        if not is_first():
            return
        with self.path.open("a") as file:
            file.write(json.dumps(values) + "\n")
        ending = "" if left is None else f" ({left / 60:.0f} min left)"
        print(" ".join(f"{name} {value}" for name, value in values.items()) + ending, file=sys.stderr, flush=True)
