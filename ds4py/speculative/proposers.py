"""The proposers of a request: what each expects of the next cycle, and what it learns from a cycle."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from ds4py.constants import MAX_DRAFT_LENGTH
from ds4py.speculative.cost_model import expected_tokens
from ds4py.speculative.costs import Costs, Curve
from ds4py.speculative.draft import Draft, Ids
from ds4py.speculative.draft_length.base import DraftEstimate
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.survival import ConfidenceSurvival, OutcomeSurvival
from ds4py.speculative.target import TargetSession

LOOKUP_PRIORS = {4: 0.6, 3: 0.5, 2: 0.3}
"""The survival to start with, by the length of the ending that was found; a longer one is rarer by chance."""


class Proposer(ABC):
    """A drafter in one request, with the estimates of survival that belong to it.

    Attributes:
        drafter: the drafter.
        priced_as: the name that the costs of its drafts are kept under; None where they cost nothing.
    """

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.priced_as: str | None = getattr(drafter, "priced_as", drafter.name)

    @abstractmethod
    def estimate(self, session: TargetSession, costs: Costs, limit: int) -> DraftEstimate | None:
        """Returns what is expected of the next `limit` proposals, at most; None where there are no proposals."""

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns proposals for the cycle of the latest estimate."""
        return self.drafter.propose(session, request, draft_length)

    def calibrated(self, confidence: Sequence[float]) -> list[float]:
        """Returns a draft's confidences as probabilities that fit the outcomes so far."""
        return list(confidence)

    @abstractmethod
    def learn(self, draft: Draft | None, draft_length: int, tokens: Sequence[int]) -> None:
        """Learns from a cycle that emitted `tokens`.

        `draft` is the whole draft of this proposer, of which `draft_length` proposals were decided on; None where
        another one drafted or none did.
        """


class ModelProposer(Proposer):
    """A drafter whose drafts take time: the engine's, or one of the caller's."""

    def __init__(self, drafter: Drafter) -> None:
        super().__init__(drafter)
        self._outcomes, self._confidence = OutcomeSurvival(), ConfidenceSurvival()
        self._has_confidence = False
        self._longest = 0
        self._learned = 0
        self._estimated: tuple[tuple[int, int, Curve | None, bool, int | None], DraftEstimate] | None = (
            None  # kept, because cycles often ask for the same
        )
        self._ends = False  # whether a draft was shorter than asked for

    def estimate(self, session: TargetSession, costs: Costs, limit: int) -> DraftEstimate:
        """Returns an estimate from its confidences where it has them, and else from outcomes."""
        owned = session.drafter if isinstance(self.drafter, DSparkDrafter) else None
        count = min(
            limit,
            owned.block if owned else min(self._longest + 1, MAX_DRAFT_LENGTH) if self._ends else MAX_DRAFT_LENGTH,
        )
        draft_lengths = range(count + 1) if owned else range(min(limit, 1) + 1)
        has_confidence = owned.confidence if owned else self._has_confidence
        curve, unmeasured = costs.curve(session.position, self.priced_as), costs.unmeasured(draft_lengths)
        state = (
            self._learned,
            count,
            curve,
            has_confidence,
            count if curve is None and unmeasured is None else unmeasured,
        )
        if self._estimated is None or self._estimated[0] != state:
            expected = (self._confidence if has_confidence else self._outcomes).estimate(count)
            self._estimated = state, DraftEstimate(expected, *state[2:], costs.oldest(count))
        return self._estimated[1]

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns the drafter's proposals, and notes how many it makes."""
        draft = super().propose(session, request, draft_length)
        if draft:
            self._longest = max(self._longest, len(draft))
            self._ends = self._ends or len(draft) < draft_length
        return draft

    def calibrated(self, confidence: Sequence[float]) -> list[float]:
        """Returns the confidences, shifted to what was accepted so far (D66)."""
        return self._confidence.calibrate(confidence)

    def learn(self, draft: Draft | None, draft_length: int, tokens: Sequence[int]) -> None:
        """Learns from the draft's confidences and from how many proposals were accepted."""
        if not draft:
            self._confidence.idle()
            return
        accepted = len(tokens) - 1
        self._learned += 1
        self._outcomes.observe(draft_length, accepted)
        self._has_confidence = draft.confidence is not None
        if draft.confidence is not None:
            self._confidence.observe(draft.confidence.tolist(), draft_length, accepted)


class LookupProposer(Proposer):
    """The prompt lookup. Its proposals are known before they are asked for, so that it learns from every cycle."""

    drafter: PromptLookupDrafter

    def __init__(self, drafter: PromptLookupDrafter) -> None:
        super().__init__(drafter)
        self._by_size = {size: OutcomeSurvival(prior) for size, prior in LOOKUP_PRIORS.items()}
        self._found: tuple[Ids, int] | None = None
        self.priced_as = None

    def estimate(self, session: TargetSession, costs: Costs, limit: int) -> DraftEstimate | None:
        """Returns an estimate from how often endings of the found length went on as before."""
        self._found = self.drafter.find(session, limit)
        if self._found is None:
            return None
        tokens, size = self._found
        return DraftEstimate(
            survival=self._by_size[size].estimate(len(tokens)),
            curve=costs.curve(session.position, None),
            unmeasured=costs.unmeasured(range(min(limit, 1) + 1)),
        )

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns the first `draft_length` tokens that were found, with q = 1."""
        return Draft.point_mass(self._found[0][:draft_length]) if self._found else None

    def learn(self, draft: Draft | None, draft_length: int, tokens: Sequence[int]) -> None:
        """Compares what was found with what came, also where another proposer drafted.

        A draw from p equals a given token as often as that token would be accepted.
        """
        if self._found is None:
            return
        found, size = self._found
        seen = min(len(found), len(tokens))
        same = next((i for i in range(seen) if found[i] != tokens[i]), seen)
        self._by_size[size].observe(seen, same)


class ProposerEstimate(NamedTuple):
    """A proposer, and its estimate of the next cycle."""

    proposer: Proposer
    estimate: DraftEstimate

    @property
    def rate(self) -> float:
        """The tokens a second at the best draft length; 0 where that length is 0."""
        draft_length, rate = self.estimate.best
        return rate if draft_length else 0.0

    @property
    def tokens(self) -> float:
        """The expected tokens of a cycle that verifies all proposals."""
        return expected_tokens(self.estimate.survival)[-1]


def proposer(drafter: Drafter) -> Proposer:
    """Makes the proposer of a drafter for one request."""
    return LookupProposer(drafter) if isinstance(drafter, PromptLookupDrafter) else ModelProposer(drafter)


def most_promising(
    proposers: Sequence[Proposer], session: TargetSession, costs: Costs, limit: int
) -> ProposerEstimate | None:
    """Returns the proposer of most expected tokens a second, or of most expected tokens where costs are unknown.

    Ties go to the first. Returns None where no proposer has proposals.
    """
    found = [
        ProposerEstimate(each, estimate) for each in proposers if (estimate := each.estimate(session, costs, limit))
    ]
    if len(found) == 1:
        return found[0]
    known = all(each.estimate.curve for each in found)
    return max(found, key=lambda each: each.rate if known else each.tokens, default=None)
