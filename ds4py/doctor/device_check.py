"""Runs the embedded pair on a device, and compares it with a reference.

A driver that crashes ends its process. So `check_device` runs the comparison in a process of its own and reports how
that process ended.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field

import numpy as np

from ds4py.json_types import Json

TIME_LIMIT = 300
PROMPT = "def quicksort(items):\n    if len(items) <= 1:\n        return items\n    pivot = items[0]\n"
WIDTHS = range(6)
MAX_ERROR = 0.02
"""The largest median of the rows' relative errors that passes. Devices quantise activations differently, and in a
single row a near tie may choose another expert."""
MIN_SAME_TOKENS = 0.8


@dataclass(frozen=True)
class DeviceCheck:
    """The result of checking a device."""

    ran: bool
    problem: str = ""
    """Why the check did not run; empty if it ran."""
    error: float = 0.0
    """Median relative error of a row of logits, over the prompt and verifies of widths 0 to 5."""
    same_tokens: float = 0.0
    """Share of the rows that have the reference's arg max."""
    same_draft: bool = False
    """Whether the drafter proposes the same block as the reference."""
    verify_ms: tuple[float, ...] = ()
    """Time of a verify by width, in ms. The embedded pair is so small that this is the time of kernel launches."""
    ops: dict[str, str] = field(default_factory=dict)
    """What computed the ops for which a device may have kernels of ds4's own (`Session.ops`)."""

    @property
    def passed(self) -> bool:
        """Whether the device computes what the reference computes."""
        return self.ran and self.error <= MAX_ERROR and self.same_tokens >= MIN_SAME_TOKENS

    def as_dict(self) -> Json:
        """Returns the values for `--json`."""
        return {**asdict(self), "passed": self.passed}


def check_device(device: str) -> DeviceCheck:
    """Checks the device of this name. The check fails if it takes more than `TIME_LIMIT` seconds."""
    command = [sys.executable, "-m", "ds4py.doctor.device_check", device]
    # The child imports the packages of this process. In a clone, the folder ds4py would hide the installed one.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False, env=environment, cwd=os.sep
        )
    except subprocess.TimeoutExpired:
        return DeviceCheck(False, f"it took more than {TIME_LIMIT} s")
    if done.returncode == 0:
        fields = json.loads(done.stdout.splitlines()[-1])
        return DeviceCheck(True, verify_ms=tuple(fields.pop("verify_ms")), **fields)
    lines = done.stderr.strip().splitlines()
    if done.returncode < 0:
        return DeviceCheck(False, f"the process died of signal {-done.returncode}: {' / '.join(lines[-2:])}")
    return DeviceCheck(False, lines[-1] if lines else f"exit code {done.returncode}")


def compare(device: str) -> Json:
    """Compares a device with a reference, and returns the fields of a `DeviceCheck`.

    The reference is the CPU with ggml's ops, because no device under test computes with these.
    """
    import ds4py

    with (
        ds4py.Engine(device="cpu", threads=1, repack=False) as reference,
        ds4py.Engine(device=device, threads=1) as tried,
        reference.session(context=256) as wanted,
        tried.session(context=256) as found,
    ):
        tokens = tried.tokenizer.encode(PROMPT)
        pairs = [(found.evaluate(tokens), wanted.evaluate(tokens))]
        anchor = int(pairs[0][1][-1].argmax())
        found.anchor = wanted.anchor = anchor
        blocks = [session.draft().tokens for session in (found, wanted)]
        proposals = [int(token) for token in blocks[1]]
        milliseconds = []
        for width in WIDTHS:
            rows = proposals[:width]
            found.verify(rows)  # the first verify of a shape builds its graph
            begin = time.perf_counter()
            logits = np.array(found.verify(rows))
            milliseconds.append(round(1000 * (time.perf_counter() - begin), 3))
            pairs.append((logits, np.array(wanted.verify(rows))))
        used = found.ops()
    return {
        "error": median_error(*(np.concatenate(each) for each in zip(*pairs, strict=True))),
        "same_tokens": float(np.concatenate([a.argmax(1) == b.argmax(1) for a, b in pairs]).mean()),
        "same_draft": [int(t) for t in blocks[0]] == proposals,
        "verify_ms": milliseconds,
        "ops": used,
    }


def median_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """Returns the median of the rows' relative errors, or infinity if a number is not finite."""
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    return float(np.median(errors)) if np.isfinite(errors).all() else float("inf")


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
