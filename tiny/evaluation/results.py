"""Holds the results of an evaluation, and reads and writes their file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ds4py.errors import FormatError

POOLED = "all"
"""The domain of numbers over all domains."""


@dataclass(frozen=True)
class Lengths:
    """The lengths of an evaluation in tokens; `windows` is a number of windows."""

    #: Of a prompt; the last one is the anchor of the first cycle.
    prompt: int = 96
    #: Generated after each prompt; the cycle that reaches it counts whole.
    generated: int = 160
    #: Of a window of the held-out loss.
    window: int = 512
    #: Windows of each domain, at most.
    windows: int = 48


@dataclass(frozen=True)
class Setup:
    """Settings of an evaluation; results also depend on the two files and the held-out text."""

    prompts: int
    width: int
    seed: int
    lengths: Lengths


@dataclass(frozen=True)
class Loss:
    """The loss of the target on held-out text."""

    domain: str
    tokens: int
    characters: int
    nats_per_token: float
    bits_per_character: float | None
    top1: float


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error and 95 % interval."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Acceptance:
    """The acceptance of one proposer. Positions are counted from the first proposal.

    Attributes:
        cycles: all cycles, with those without a proposal.
        proposed: the share of cycles with a proposal.
        per_cycle: tokens emitted a cycle, accepted + 1.
        conditional: P(accepted | those before it were), by position; None where none was judged.
        reach: the share of cycles that accepted the position, and so all before it.
        distinct: distinct 4-grams of all 4-grams of a text; None where texts are shorter.
    """

    proposer: str
    temperature: float
    domain: str
    cycles: int
    proposed: float
    per_cycle: Estimate
    conditional: tuple[float | None, ...]
    reach: tuple[float, ...]
    distinct: float | None


@dataclass(frozen=True)
class Bin:
    """Judged proposals of about the same confidence."""

    count: int
    confidence: float
    accepted: float


@dataclass(frozen=True)
class Calibration:
    """The drafter's confidence beside the acceptance of the proposals that were judged.

    Attributes:
        domain: the domain of the texts; `POOLED` stands for all of them.
        error: the expected calibration error; None if nothing was judged.
        auc: how well the confidence ranks accepted before rejected proposals; None unless there are both.
    """

    temperature: float
    domain: str
    proposals: int
    error: float | None
    auc: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Sample:
    """A held-out prompt and its continuation, to be read."""

    domain: str
    temperature: float
    prompt: str
    text: str


@dataclass(frozen=True)
class Evaluation:
    """All numbers of one pair. They are equal for equal files, held-out text and setup, except for `seconds`."""

    target: str
    drafter: str
    setup: Setup
    losses: tuple[Loss, ...]
    acceptance: tuple[Acceptance, ...]
    calibration: tuple[Calibration, ...]
    samples: tuple[Sample, ...]
    seconds: float = field(compare=False)

    def write(self, path: Path) -> None:
        """Writes the evaluation as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Evaluation:
        """Reads what `write` wrote. Raises FormatError for anything else."""
        try:
            return _evaluation(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"{path}: no evaluation ({error!r}): evaluate the pair again") from None


def _evaluation(found: dict[str, Any]) -> Evaluation:
    setup = found["setup"]
    return Evaluation(
        **found
        | {
            "setup": Setup(**setup | {"lengths": Lengths(**setup["lengths"])}),
            "losses": tuple(Loss(**each) for each in found["losses"]),
            "acceptance": tuple(_acceptance(each) for each in found["acceptance"]),
            "calibration": tuple(_calibration(each) for each in found["calibration"]),
            "samples": tuple(Sample(**each) for each in found["samples"]),
        }
    )


def _acceptance(found: dict[str, Any]) -> Acceptance:
    lists = {name: tuple(found[name]) for name in ("conditional", "reach")}
    return Acceptance(**found | lists | {"per_cycle": Estimate(**found["per_cycle"])})


def _calibration(found: dict[str, Any]) -> Calibration:
    return Calibration(**found | {"bins": tuple(Bin(**each) for each in found["bins"])})
