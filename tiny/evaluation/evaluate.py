"""Evaluates a pair on held-out text, and writes `evaluation.json`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ds4py import Engine
from ds4py.console import Bar
from ds4py.errors import RequestError
from tiny.config import DOMAINS
from tiny.evaluation import heldout
from tiny.evaluation.generation import TEMPERATURES, WIDTH, texts
from tiny.evaluation.loss import characters, held_out_loss
from tiny.evaluation.proposers import PROPOSERS
from tiny.evaluation.results import Evaluation, Lengths, Setup
from tiny.evaluation.summary import acceptance, calibration, samples

Progress = Callable[[int, int], None]
"""Receives the number of steps that are done, and of all steps."""


def evaluate(
    work: Path,
    target: Path,
    drafter: Path,
    prompts: int = 24,
    *,
    seed: int = 0,
    lengths: Lengths | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Runs a pair on held-out text as a user would, and writes `evaluation.json` into the work folder.

    Args:
        work: the folder with the held-out streams, `data/heldout_{domain}.bin`.
        target: a GGUF file.
        drafter: a GGUF file of a DSpark drafter for the target.
        prompts: the number of prompts of each domain, for every temperature and proposer.
        seed: the seed of all draws; the same files and seed give the same numbers.
        lengths: the lengths of prompts, texts and windows; None takes the defaults.
        progress: reports progress; None draws a bar on a terminal's standard error.

    Raises FormatError for files that are missing, damaged or too short, PairError if target and drafter do not fit, and
    RequestError for numbers out of range.
    """
    setup = checked(Setup(prompts, WIDTH, seed, lengths or Lengths()))
    started = time.perf_counter()
    with Engine(target, drafter=drafter, device="cpu", threads=1) as engine, Bar("evaluating") as bar:
        material = cut(work, engine.tokenizer.vocab_size, setup)
        steps = Steps(material, progress or bar.update)
        with engine.session(context=positions(setup.lengths)) as session:
            per_token = characters(engine.tokenizer)
            losses = tuple(held_out_loss(session, m.domain, m.windows, per_token, steps) for m in material)
            found = [
                t for m in material for t in texts(session, m.domain, m.prompts, setup.lengths.generated, seed, steps)
            ]
        evaluation = Evaluation(
            target=target.name,
            drafter=drafter.name,
            setup=setup,
            losses=losses,
            acceptance=acceptance(found, seed),
            calibration=calibration(found),
            samples=samples(found, engine.tokenizer),
            seconds=time.perf_counter() - started,
        )
    evaluation.write(work / "evaluation.json")
    return evaluation


@dataclass(frozen=True)
class Material:
    """The prompts and windows that are cut from the held-out text of one domain."""

    domain: str
    prompts: list[list[int]]
    windows: list[heldout.Stream]


class Steps:
    """Counts windows and texts, and reports them."""

    def __init__(self, material: Sequence[Material], report: Progress) -> None:
        texts_each = len(TEMPERATURES) * len(PROPOSERS)
        self._total = sum(len(m.windows) + texts_each * len(m.prompts) for m in material)
        self._done = 0
        self._report = report

    def __call__(self) -> None:
        """Counts one more step."""
        self._done += 1
        self._report(self._done, self._total)


def checked(setup: Setup) -> Setup:
    """Returns the setup. Raises RequestError for numbers that leave nothing to evaluate."""
    lengths = setup.lengths
    wanted = {"prompts": (setup.prompts, 1), "seed": (setup.seed, 0), "lengths.prompt": (lengths.prompt, 3)}
    wanted |= {f"lengths.{name}": (getattr(lengths, name), 1) for name in ("generated", "window", "windows")}
    for name, (found, least) in wanted.items():
        if found < least:
            raise RequestError(f"evaluate: {name} is {found}, wanted {least} or more")
    return setup


def cut(work: Path, vocab: int, setup: Setup) -> list[Material]:
    """Cuts the material of all domains before anything is run. Raises FormatError as `heldout` does."""
    lengths = setup.lengths
    streams = {domain: heldout.read(work, domain, vocab) for domain in DOMAINS}
    return [
        Material(
            domain,
            heldout.prompts(stream, domain, setup.prompts, lengths.prompt),
            heldout.windows(stream, domain, lengths.windows, lengths.window),
        )
        for domain, stream in streams.items()
    ]


def positions(lengths: Lengths) -> int:
    """Returns the positions that the session needs. The last cycle may exceed the end of a text."""
    return max(lengths.window, lengths.prompt + lengths.generated + 2 * (WIDTH + 1))
