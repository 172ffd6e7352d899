"""Generates texts with the target, which the drafter learns to predict."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from ..config import Shape
from ..model.decode import generate
from ..model.target import Target
from .checkpoint import load_model
from .data import Corpus
from .processes import is_first
from .report import Report

TEXTS, PROMPT, LENGTH = 96, 32, 256
TEMPERATURES = (0.0, 0.7, 1.0, 1.0)
"""The temperatures of the texts. Few are greedy, because greedy text repeats itself and is easy to learn."""


def write(rank: int, work: Path, tokens: int, seed: int) -> None:
    """Generates one process's share of `tokens` tokens.

    It ends with `work/rollouts.RANK.npy`, uint16 [texts, LENGTH].
    """
    path = work / f"rollouts.{rank}.npy"
    if path.exists():
        return
    target = load_model(work / "target.pt", Target(Shape()))
    corpus, generator = Corpus(work, seed + 1), torch.Generator().manual_seed(1000 * seed + rank)
    temperatures = torch.tensor(TEMPERATURES).repeat(TEXTS // len(TEMPERATURES))
    share, made = tokens // dist.get_world_size(), []
    report = Report(work / "rollouts.log", share, 0)
    while (done := len(made) * TEXTS * (LENGTH - PROMPT)) < share:
        prompts = corpus.windows(len(made), rank, TEXTS, PROMPT)
        made.append(generate(target, prompts, LENGTH, temperatures, generator).numpy().astype(np.uint16))
        if is_first():
            report.add(len(made), min(share, done + TEXTS * (LENGTH - PROMPT)))
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, np.concatenate(made))
    os.replace(partial, path)
