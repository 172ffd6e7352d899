"""Runs the embedded pair on a device and compares it with a reference, in a process of its own.

A driver that crashes takes its process with it; so `try_device` starts one, and says what became of it.
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

SECONDS = 300
PROMPT = "def quicksort(items):\n    if len(items) <= 1:\n        return items\n    pivot = items[0]\n"
WIDTHS = range(6)
BOUND = 0.02
"""Relative error of the median row's logits that is put down to arithmetic: activations are quantised differently. A
single row may be further off, where a near tie sends it to another expert."""
AGREEMENT = 0.8


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    ran: bool
    problem: str = ""
    """Why it did not run."""
    error: float = 0.0
    """The median relative error of a row's logits, in the prompt and in verifies of widths 0 to 5."""
    same_tokens: float = 0.0
    """Share of the rows with the reference's arg max."""
    same_draft: bool = False
    """Whether the drafter proposes the same block."""
    verify_ms: tuple[float, ...] = ()
    """By width, of the embedded pair, whose time is launches and not arithmetic."""
    ops: dict[str, str] = field(default_factory=dict)
    """Who computed what a device may have kernels of our own for (`Session.ops`)."""

    @property
    def passed(self) -> bool:
        """Whether it computes what the reference does."""
        return self.ran and self.error <= BOUND and self.same_tokens >= AGREEMENT

    def as_dict(self) -> Json:
        """For `--json`."""
        return {**asdict(self), "passed": self.passed}


def try_device(device: str) -> Trial:
    """Of a device by its name, within `SECONDS`."""
    command = [sys.executable, "-m", "ds4py.doctor.trial", device]
    # The same packages as here, and not what a folder happens to be called: in a clone there is one named ds4py.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, check=False, env=environment, cwd=os.sep
        )
    except subprocess.TimeoutExpired:
        return Trial(False, f"it took more than {SECONDS} s")
    if done.returncode == 0:
        fields = json.loads(done.stdout.splitlines()[-1])
        return Trial(True, verify_ms=tuple(fields.pop("verify_ms")), **fields)
    lines = done.stderr.strip().splitlines()
    if done.returncode < 0:
        return Trial(False, f"the process died of signal {-done.returncode}: {' / '.join(lines[-2:])}")
    return Trial(False, lines[-1] if lines else f"exit code {done.returncode}")


def compare(device: str) -> Json:
    """The numbers of a trial. The reference is the CPU with ggml's ops, which is none of what is tried."""
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
            found.verify(rows)  # the first one builds the graph
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
    """Of the rows, relative; infinite where something is not a number."""
    errors = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    return float(np.median(errors)) if np.isfinite(errors).all() else float("inf")


if __name__ == "__main__":
    print(json.dumps(compare(sys.argv[1])))
