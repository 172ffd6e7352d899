"""Formats evaluations in Markdown, for a model card."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tiny.config import DOMAINS
from tiny.evaluation.comparison import Comparison
from tiny.evaluation.generation import TEMPERATURES
from tiny.evaluation.proposers import PROPOSERS
from tiny.evaluation.results import Acceptance, Evaluation

NAMES = {"dspark": "DSpark", "lookup": "prompt lookup", "both": "lookup, else DSpark"}


def tables(evaluation: Evaluation) -> str:
    """Formats all tables with their headings, without the samples."""
    setup = evaluation.setup
    cycle = (
        f"{setup.prompts} prompts of {setup.lengths.prompt} held-out tokens for each domain and temperature, up to "
        f"{setup.lengths.generated} tokens generated after each, {setup.width} proposals a cycle, exact acceptance; "
        "± is the standard error over prompts."
    )
    parts = [
        "### Held-out loss",
        loss_table(evaluation),
        "### Tokens per cycle",
        cycle,
        cycle_table(evaluation),
        *(
            part
            for proposer in PROPOSERS
            for part in (f"### Acceptance by position: {NAMES[proposer]}", position_table(evaluation, proposer))
        ),
        "### Confidence against acceptance",
        calibration_table(evaluation),
    ]
    return "\n\n".join(parts) + "\n"


def loss_table(evaluation: Evaluation) -> str:
    """Formats the loss of the target by domain."""
    header = ("domain", "tokens", "nats per token", "bits per character", "top-1")
    return markdown(
        header,
        (
            (x.domain, str(x.tokens), number(x.nats_per_token, 3), number(x.bits_per_character, 3), percent(x.top1))
            for x in evaluation.losses
        ),
    )


def cycle_table(evaluation: Evaluation) -> str:
    """Formats tokens per cycle, with a row for each temperature and domain and a column for each proposer."""
    found = {(x.proposer, x.temperature, x.domain): x.per_cycle for x in evaluation.acceptance}
    return markdown(
        ("domain", "T", *(NAMES[proposer] for proposer in PROPOSERS)),
        (
            (
                domain,
                f"{temperature:g}",
                *(f"{x.value:.2f} ± {x.error:.2f}" for x in (found[p, temperature, domain] for p in PROPOSERS)),
            )
            for temperature in TEMPERATURES
            for domain in DOMAINS
        ),
    )


def position_table(evaluation: Evaluation, proposer: str) -> str:
    """Formats acceptance of each position given those before it, and of whole blocks."""
    positions = [f"accept {k}" for k in range(1, evaluation.setup.width + 1)]
    header = ("domain", "T", *positions, "whole block", "cycles", "with proposals", "distinct 4-grams")
    return markdown(header, (position_row(x) for x in evaluation.acceptance if x.proposer == proposer))


def position_row(found: Acceptance) -> list[str]:
    """Formats a row of `position_table`."""
    return [
        found.domain,
        f"{found.temperature:g}",
        *(number(value, 2) for value in found.conditional),
        percent(found.reach[-1]),
        str(found.cycles),
        percent(found.proposed),
        number(found.distinct, 2),
    ]


def calibration_table(evaluation: Evaluation) -> str:
    """Formats the calibration of the drafter's confidence."""
    header = ("domain", "T", "proposals judged", "calibration error", "AUC")
    return markdown(
        header,
        (
            (x.domain, f"{x.temperature:g}", str(x.proposals), number(x.error, 3), number(x.auc, 2))
            for x in evaluation.calibration
        ),
    )


def comparison_table(comparison: Comparison) -> str:
    """Formats the tokens per cycle of two runs."""
    header = ("domain", "T", "first", "second", "difference")
    return markdown(
        header,
        (
            (
                x.domain,
                f"{x.temperature:g}",
                number(x.first, 2),
                number(x.second, 2),
                f"{100 * x.relative:+.1f} % ± {100 * x.error:.1f} %",
            )
            for x in comparison.differences
        ),
    )


def sample_texts(evaluation: Evaluation) -> str:
    """Formats the samples, each prompt and continuation in a block of its own."""
    return "\n".join(
        f"#### {sample.domain}, temperature {sample.temperature:g}\n\nPrompt:\n\n{fenced(sample.prompt)}\n\n"
        f"Continuation:\n\n{fenced(sample.text)}\n"
        for sample in evaluation.samples
    )


def fenced(text: str) -> str:
    """Formats a code block that no backticks inside can end."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Formats a table whose first column is text and whose others are numbers."""
    rule = [":--", *("--:" for _ in header[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, rule, *rows))


def number(value: float | None, digits: int) -> str:
    """Formats a number, or a dash."""
    return "–" if value is None else f"{value:.{digits}f}"


def percent(share: float) -> str:
    """Formats a share in percent."""
    return f"{100 * share:.1f} %"
