"""Computes the numbers that are reported from texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ds4py.tokenizer import Tokenizer
from tiny.config import DOMAINS
from tiny.evaluation import statistics
from tiny.evaluation.generation import TEMPERATURES, WIDTH, Text
from tiny.evaluation.proposers import PROPOSERS
from tiny.evaluation.results import POOLED, Acceptance, Calibration, Sample

SAMPLED = (0.0, 0.7)
"""The temperatures of the samples."""


def acceptance(texts: Sequence[Text], seed: int) -> tuple[Acceptance, ...]:
    """Returns the acceptance by proposer, temperature and domain."""
    return tuple(
        accepted([t for t in texts if (t.proposer, t.temperature, t.domain) == (proposer, temperature, domain)], seed)
        for proposer in PROPOSERS
        for temperature in TEMPERATURES
        for domain in DOMAINS
    )


def accepted(texts: Sequence[Text], seed: int) -> Acceptance:
    """Returns the acceptance in texts of one proposer, temperature and domain."""
    cycles = [cycle for text in texts for cycle in text.cycles]
    return Acceptance(
        proposer=texts[0].proposer,
        temperature=texts[0].temperature,
        domain=texts[0].domain,
        cycles=len(cycles),
        proposed=sum(cycle.width > 0 for cycle in cycles) / len(cycles),
        per_cycle=statistics.per_cycle([text.cycles for text in texts], seed),
        conditional=statistics.conditional(cycles, WIDTH),
        reach=statistics.reach(cycles, WIDTH),
        distinct=statistics.distinct(text.tokens for text in texts),
    )


def calibration(texts: Sequence[Text]) -> tuple[Calibration, ...]:
    """Returns the calibration of the drafter by temperature, over all domains and in each."""
    drafted = [text for text in texts if text.proposer == "dspark"]
    return tuple(
        calibrated(
            temperature, domain, (t for t in drafted if t.temperature == temperature and domain in (POOLED, t.domain))
        )
        for temperature in TEMPERATURES
        for domain in (POOLED, *DOMAINS)
    )


def calibrated(temperature: float, domain: str, texts: Iterable[Text]) -> Calibration:
    """Returns the calibration in texts of one temperature and domain."""
    judged = statistics.judged(cycle for text in texts for cycle in text.cycles)
    bins = statistics.bins(judged)
    return Calibration(
        temperature=temperature,
        domain=domain,
        proposals=len(judged.accepted),
        error=statistics.calibration_error(bins),
        auc=statistics.auc(judged),
        bins=bins,
    )


def samples(texts: Sequence[Text], tokenizer: Tokenizer) -> tuple[Sample, ...]:
    """Chooses one continuation for each domain and temperature of `SAMPLED`, of the prompt in the middle."""
    found = []
    for domain in DOMAINS:
        for temperature in SAMPLED:
            kind = (domain, "dspark", temperature)
            same = [text for text in texts if (text.domain, text.proposer, text.temperature) == kind]
            text = same[len(same) // 2]
            prompt, tokens = (tokenizer.decode(ids, skip_special=True) for ids in (text.prompt, text.tokens))
            found.append(Sample(domain, temperature, prompt, tokens))
    return tuple(found)
