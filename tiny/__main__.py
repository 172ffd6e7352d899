"""The recipe of the tiny pair, from nothing to two GGUF files and their evaluation.

Every stage that is done is skipped, and an interrupted one goes on from its last checkpoint, so the same command
resumes. Needs the training extra (pip install '.[training]') and a C++ compiler.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from . import corpus
from .card import card
from .config import FULL, SMOKE, Budget, DraftShape, Shape
from .evaluation import evaluate, tables


def main() -> None:
    """Runs the stages that are not complete."""
    parser = argparse.ArgumentParser(prog="python -m tiny", description=__doc__)
    parser.add_argument("work", type=Path, help="folder for everything that is made")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and of the order of the text (default: 1)")
    cores = min(2, os.cpu_count() or 1)
    parser.add_argument("--workers", type=int, choices=(1, 2), default=cores, help="processes, a core each")
    parser.add_argument("--smoke", action="store_true", help="train for minutes, to see everything run")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    budget = SMOKE if args.smoke else FULL
    corpus.build(args.work, show)
    train(args.work, budget, args.seed, args.workers)
    export_pair(args.work)
    print(tables(evaluate(args.work, args.work / "tiny-target.gguf", args.work / "tiny-drafter.gguf")))
    (args.work / "tiny.md").write_text(card(args.work), encoding="utf-8")


def train(work: Path, budget: Budget, seed: int, workers: int) -> None:
    """Trains the target, generates its texts, and trains the drafter."""
    from .training import drafter, processes, rollouts, target, teacher

    def stage(files: list[str], function: Callable[..., None], *amount: int) -> None:
        if not all((work / file).exists() for file in files):
            processes.run(function, workers, work, *amount, seed)

    ranks = range(workers)
    stage(["target.pt"], target.train, budget.target_tokens)
    stage([f"rollouts.{rank}.npy" for rank in ranks], rollouts.write, budget.rollout_tokens)
    stage([f"teacher.{rank}.hidden.npy" for rank in ranks], teacher.write)
    stage(["drafter.pt"], drafter.train, budget.drafter_steps)


def export_pair(work: Path) -> None:
    """Writes a checkpoint in DeepSeek's names, and the GGUF files of the package."""
    from . import export, reference
    from .model.drafter import Drafter
    from .model.target import Target
    from .training.checkpoint import load_model

    target = load_model(work / "target.pt", Target(Shape()))
    drafter = load_model(work / "drafter.pt", Drafter(Shape(), DraftShape()))
    export.write_checkpoint(work / "checkpoint", target, drafter, work / "data")
    target_file, drafter_file = work / "tiny-target.gguf", work / "tiny-drafter.gguf"
    export.convert(work / "checkpoint", target_file, drafter_file, "q8", "DS4 tiny")
    reference.write(work, target_file, drafter_file)


def show(text: str, done: float) -> None:
    """Prints a line of progress of the corpus."""
    print(f"\r{text}: {done:.0%}", end="\n" if done >= 1 else "", flush=True)


if __name__ == "__main__":
    main()
