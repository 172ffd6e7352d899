"""Cycles without a model, for tests of width policies: acceptance is scripted, and time is the costs' own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ds4py.speculative import Costs, Draft, ScriptedDrafter
from ds4py.speculative.draft_length import Width
from ds4py.speculative.proposers import Modelled
from ds4py.speculative.stats import Cycle

Acceptance = Callable[[int], float]
"""P(a proposal is accepted | those before it are), by the number of tokens before the cycle."""

MID = (61.9, 74.0, 86.0, 98.0, 110.0, 122.8)
"""Milliseconds of a verify by width: an 8-layer model on two cores (docs/regimes.md)."""


def costs(verify_ms: Sequence[float], draft_ms: float) -> Costs:
    """Costs that are known; ScriptedDrafter's drafts take `draft_ms`."""
    curve = {str(k): ms for k, ms in enumerate(verify_ms)}
    return Costs.from_dict({"verify_ms": {"0": curve}, "draft_ms": {"scripted": {"0": draft_ms or 1e-6}}})


class Simulation:
    """One request of a drafter that makes blocks of `block` proposals, with or without calibrated confidences."""

    def __init__(
        self, width: Width, known: Costs, acceptance: Acceptance, *, block: int = 5, sure: float = 0.0, seed: int = 0
    ) -> None:
        self.width, self.costs, self.acceptance = width.start(), known, acceptance
        self.block, self.sure = block, sure  # sure: how far confidences tell proposals apart; 0 is no confidences
        self.proposer = Modelled(ScriptedDrafter(lambda _: self.draft(self.upcoming)))
        self.upcoming = np.empty(0)
        self.rng = np.random.default_rng(seed)
        self.cycles: list[Cycle] = []
        self.tokens, self.seconds = 0, 0.0

    def run(self, tokens: int) -> float:
        """Returns the milliseconds a token over `tokens` tokens."""
        while self.tokens < tokens:
            self.cycle(tokens - self.tokens - 1)
        return 1000 * self.seconds / self.tokens

    def cycle(self, most: int) -> None:
        """Runs one cycle, of which at most `most` proposals can be verified."""
        session: Any = SimpleNamespace(position=0, drafter=None, history=tuple)
        offer = self.proposer.offer(session, self.costs, most)
        assert offer.curve is not None
        width = min(self.width.choose(offer), most) if most else 0
        self.upcoming = chances = self.chances()
        draft = self.proposer.propose(session, None, width) if width else None  # type: ignore[arg-type]
        if draft is not None and draft.confidence is not None:
            width = self.width.admit(offer, self.proposer.calibrated(draft.confidence[:width].tolist()))
        width = min(width, self.block)
        wrong = np.flatnonzero(self.rng.random(width) >= chances[:width])
        accepted = int(wrong[0]) if len(wrong) else width
        drafted = offer.curve.draft if draft is not None else 0.0
        cycle = Cycle(width, accepted, drafted, offer.curve.verify[width], 0.0, (), "", self.width.trying)
        self.proposer.learn(draft, width, range(accepted + 1))
        self.width.observe(cycle)
        self.cycles.append(cycle)
        self.tokens += accepted + 1
        self.seconds += cycle.seconds

    def chances(self) -> np.ndarray:
        """Returns the chance of each proposal of a block; with confidences they differ around the acceptance."""
        mean = self.acceptance(self.tokens)
        if not self.sure or not 0 < mean < 1:
            return np.full(self.block, mean)
        return self.rng.beta(mean / self.sure, (1 - mean) / self.sure, self.block)

    def draft(self, chances: np.ndarray) -> Draft:
        """Makes proposals, and confidences that are right."""
        confidence = chances.astype(np.float32) if self.sure else None
        return Draft.point_mass(np.zeros(len(chances), np.int32), confidence)
