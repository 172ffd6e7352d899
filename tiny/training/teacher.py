"""Computes what the drafter learns from: texts, half of them the target's own, with the target's outputs.

The outputs are computed once and stored. Otherwise the target would take most of the time of each drafter step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import DraftShape, Shape
from ..model.target import Target
from . import rollouts
from .checkpoint import load_model
from .data import Corpus
from .processes import is_first
from .report import Report

AT_ONCE = 16
KINDS = ("tokens", "features", "hidden")


@dataclass
class Lesson:
    """A batch of texts for the drafter.

    Attributes:
        tokens: [n, length].
        features: [n, length, taps * d] of the target.
        hidden: [n, length, d] of the target.
        first: [n], the first position where an anchor may be.
    """

    tokens: Tensor
    features: Tensor
    hidden: Tensor
    first: Tensor


@torch.no_grad()
def write(rank: int, work: Path, seed: int) -> None:
    """Computes the part of one process, with its own rollouts.

    It writes `work/teacher.RANK.KIND.npy`, with tokens as uint16 and the others as float16.
    """
    if path(work, rank, KINDS[-1]).exists():
        return
    shape, draft = Shape(), DraftShape()
    target = load_model(work / "target.pt", Target(shape))
    own = np.load(work / f"rollouts.{rank}.npy").astype(np.int64)
    corpus = Corpus(work, seed + 2).windows(0, rank, len(own), own.shape[1])
    texts = torch.cat([torch.from_numpy(own), corpus])
    report = Report(work / "teacher.log", len(texts), 0)
    features = create(work, rank, "features", (*texts.shape, len(draft.taps) * shape.hidden))
    hidden = create(work, rank, "hidden", (*texts.shape, shape.hidden))
    for first in range(0, len(texts), AT_ONCE):
        some = texts[first : first + AT_ONCE]
        output = target(some, taps=draft.taps)
        features[first : first + AT_ONCE] = output.features.view(*some.shape, -1).half().numpy()
        hidden[first : first + AT_ONCE] = output.hidden.view(*some.shape, -1).half().numpy()
        if is_first():
            report.add(first, min(len(texts), first + AT_ONCE))
    np.save(path(work, rank, "tokens"), texts.numpy().astype(np.uint16))
    for kind in KINDS[1:]:
        os.replace(path(work, rank, kind).with_suffix(".partial"), path(work, rank, kind))


class Teacher:
    """The mapped lessons of one process."""

    def __init__(self, work: Path, rank: int) -> None:
        self.tokens, self.features, self.hidden = (np.load(path(work, rank, kind), mmap_mode="r") for kind in KINDS)

    def lesson(self, count: int, turn: int, rng: torch.Generator) -> Lesson:
        """Draws `count` texts. If `count` is odd, every other `turn` has one more of the target's own."""
        half, own = len(self.tokens) // 2, count // 2 + count % 2 * (turn % 2)
        rows = torch.randint(half, (count,), generator=rng) + torch.where(torch.arange(count) < own, 0, half)
        tokens, features, hidden = (
            torch.from_numpy(np.stack([part[row] for row in rows.tolist()]))
            for part in (self.tokens, self.features, self.hidden)
        )
        first = torch.where(torch.arange(count) < own, rollouts.PROMPT - 4, 8)
        return Lesson(tokens.long(), features.float(), hidden.float(), first)


def path(work: Path, rank: int, kind: str) -> Path:
    """Returns the path of one process's part of one kind."""
    return work / f"teacher.{rank}.{kind}.npy"


def create(work: Path, rank: int, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Creates an array of float16 on disk, under a temporary name."""
    return np.lib.format.open_memmap(path(work, rank, kind).with_suffix(".partial"), "w+", np.float16, shape)
