"""Generates texts with a proposer, and records the cycles that made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ds4py import Sampling, Session
from ds4py.speculative import Cycle, Drafter, DraftRequest, Fixed, Loop
from tiny.config import DOMAINS
from tiny.evaluation.proposers import PROPOSERS

TEMPERATURES = (0.0, 0.7, 1.0)
WIDTH = 5
"""Proposals that every cycle verifies, if there are as many. It is the drafter's block."""


@dataclass(frozen=True)
class Text:
    """The text that was generated after one prompt, without the token that ended it."""

    domain: str
    proposer: str
    temperature: float
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    cycles: tuple[Cycle, ...]


def texts(
    session: Session, domain: str, prompts: Sequence[Sequence[int]], length: int, seed: int, step: Callable[[], None]
) -> Iterator[Text]:
    """Generates a text for every prompt, temperature and proposer. `step` is called after each."""
    for index, prompt in enumerate(prompts):
        begin(session, prompt)
        for temperature in TEMPERATURES:
            for proposer, make in PROPOSERS.items():
                session.rewind(len(prompt) - 1)
                sampling = Sampling(temperature=temperature, seed=seed_of(seed, domain, index, temperature, proposer))
                tokens, cycles = generate(session, prompt[-1], make(), sampling, length)
                yield Text(domain, proposer, temperature, tuple(prompt), tokens, cycles)
                step()


def begin(session: Session, prompt: Sequence[int]) -> None:
    """Fills the state with the tokens of the prompt but the last, and leaves a checkpoint near its end."""
    session.rewind(0)
    session.prefill(prompt[:-2])
    session.prefill(prompt[-2:-1])


def generate(
    session: Session, anchor: int, drafter: Drafter, sampling: Sampling, length: int
) -> tuple[tuple[int, ...], tuple[Cycle, ...]]:
    """Returns `length` tokens after the anchor, or fewer if the text ends, and the cycles.

    All cycles are whole: neither the end of the text nor its length cuts the last one's proposals. So tokens per cycle
    are those of endless text.
    """
    loop = Loop(session, DraftRequest.of(sampling), [drafter], Fixed(WIDTH))
    stops = session.tokenizer.stop_ids
    session.anchor = anchor
    tokens: list[int] = []
    while len(tokens) < length and stops.isdisjoint(tokens):
        found = loop.cycle(WIDTH + 1)
        session.commit(len(found) - 1, found[-1])
        tokens += found
    end = next((i for i, token in enumerate(tokens) if token in stops), length)
    return tuple(tokens[: min(end, length)]), tuple(loop.stats.cycles)


def seed_of(seed: int, domain: str, prompt: int, temperature: float, proposer: str) -> int:
    """Returns a seed of its own for each text."""
    place = (DOMAINS.index(domain), prompt, TEMPERATURES.index(temperature), list(PROPOSERS).index(proposer))
    return int(np.random.SeedSequence((seed, *place)).generate_state(1, np.uint64)[0])
