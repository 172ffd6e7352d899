"""Draws windows of the corpus at random, by domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..config import DOMAINS, MIXTURE


class Corpus:
    """The mapped training tokens of all domains. Windows depend on the seed and the step alone."""

    def __init__(self, work: Path, seed: int) -> None:
        self.streams = [np.memmap(work / "data" / f"train_{domain}.bin", "<u2", "r") for domain in DOMAINS]
        self.weights = np.array([MIXTURE[domain] for domain in DOMAINS])
        self.seed = seed

    def windows(self, step: int, rank: int, count: int, length: int) -> Tensor:
        """Returns [count, length] tokens for one process's part of a step."""
        rng = np.random.default_rng([self.seed, step, rank])
        rows = []
        for domain in rng.choice(len(DOMAINS), count, p=self.weights / self.weights.sum()):
            stream = self.streams[domain]
            first = rng.integers(len(stream) - length)
            rows.append(np.asarray(stream[first : first + length], np.int64))
        return torch.from_numpy(np.stack(rows))


def heldout(work: Path, domain: str, count: int, length: int) -> Tensor:
    """Returns [count, length] tokens, spread evenly over the held-out text of a domain."""
    stream = np.fromfile(work / "data" / f"heldout_{domain}.bin", "<u2").astype(np.int64)
    step = (len(stream) - length) // count
    return torch.from_numpy(np.stack([stream[i * step : i * step + length] for i in range(count)]))
