"""Who proposes in a request, what each expects of the next cycle, and what it learns from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from ds4py.speculative.costs import Costs, Curve
from ds4py.speculative.draft import Draft, Ids
from ds4py.speculative.draft_length.base import MOST, Offer
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.dspark import DSparkDrafter
from ds4py.speculative.expected import emitted
from ds4py.speculative.lookup import PromptLookupDrafter
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.survival import Confident, Observed
from ds4py.speculative.target import TargetSession

LOOKUP_PRIORS = {4: 0.6, 3: 0.5, 2: 0.3}
"""By the length of the ending that was found; a longer one is rarer by chance."""


class Proposer(ABC):
    """A drafter in one request.

    Attributes:
        priced_as: the name that its drafts' costs go by; None where they cost nothing.
    """

    def __init__(self, drafter: Drafter) -> None:
        self.drafter = drafter
        self.priced_as: str | None = getattr(drafter, "priced_as", drafter.name)

    @abstractmethod
    def offer(self, session: TargetSession, costs: Costs, most: int) -> Offer | None:
        """What the next `most` proposals promise; None where there are none."""

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft | None:
        """Proposals for the cycle that was offered."""
        return self.drafter.propose(session, request, width)

    def calibrated(self, confidence: Sequence[float]) -> list[float]:
        """The confidences of a draft, as P(accepted)."""
        return list(confidence)

    @abstractmethod
    def learn(self, draft: Draft | None, width: int, tokens: Sequence[int]) -> None:
        """Learns from a cycle that emitted `tokens`.

        `draft` is what this one drafted, whole, of which `width` were verified; None where it was not asked.
        """


class Modelled(Proposer):
    """A drafter whose drafts take time: the engine's, or one that the caller brings."""

    def __init__(self, drafter: Drafter) -> None:
        super().__init__(drafter)
        self._observed, self._confident = Observed(), Confident()
        self._has_confidence = False
        self._longest = 0
        self._learned = 0
        self._offered: tuple[tuple[int, int, Curve | None, bool, int | None], Offer] | None = None  # often the same
        self._ends = False  # whether a draft was shorter than asked for, so that others are not much longer

    def offer(self, session: TargetSession, costs: Costs, most: int) -> Offer:
        """By its confidences, where it has them."""
        owned = session.drafter if isinstance(self.drafter, DSparkDrafter) else None
        count = min(most, owned.block if owned else min(self._longest + 1, MOST) if self._ends else MOST)
        widths = range(count + 1) if owned else range(min(most, 1) + 1)
        confident = owned.confidence if owned else self._has_confidence
        curve, unknown = costs.curve(session.position, self.priced_as), costs.unknown(widths)
        state = (self._learned, count, curve, confident, count if curve is None and unknown is None else unknown)
        if self._offered is None or self._offered[0] != state:
            expected = (self._confident if confident else self._observed).expected(count)
            self._offered = state, Offer(expected, *state[2:], costs.oldest(count))
        return self._offered[1]

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft | None:
        """The drafter's proposals."""
        draft = super().propose(session, request, width)
        if draft:
            self._longest = max(self._longest, len(draft))
            self._ends = self._ends or len(draft) < width
        return draft

    def calibrated(self, confidence: Sequence[float]) -> list[float]:
        """Shifted to what was accepted so far."""
        return self._confident.of(confidence)

    def learn(self, draft: Draft | None, width: int, tokens: Sequence[int]) -> None:
        """Its confidences, and what became of the proposals."""
        if not draft:
            self._confident.idle()
            return
        accepted = len(tokens) - 1
        self._learned += 1
        self._observed.judged(width, accepted)
        self._has_confidence = draft.confidence is not None
        if draft.confidence is not None:
            self._confident.drafted(draft.confidence.tolist(), width, accepted)


class Lookup(Proposer):
    """The text so far: its proposals are there before they are asked for, and tell something even if they are not."""

    drafter: PromptLookupDrafter

    def __init__(self, drafter: PromptLookupDrafter) -> None:
        super().__init__(drafter)
        self._by_size = {size: Observed(prior) for size, prior in LOOKUP_PRIORS.items()}
        self._found: tuple[Ids, int] | None = None
        self.priced_as = None

    def offer(self, session: TargetSession, costs: Costs, most: int) -> Offer | None:
        """By how often endings of this length went on as before."""
        self._found = self.drafter.find(session, most)
        if self._found is None:
            return None
        tokens, size = self._found
        return Offer(
            expected=self._by_size[size].expected(len(tokens)),
            curve=costs.curve(session.position, None),
            unknown=costs.unknown(range(min(most, 1) + 1)),
        )

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft | None:
        """What was found."""
        return Draft.point_mass(self._found[0][:width]) if self._found else None

    def learn(self, draft: Draft | None, width: int, tokens: Sequence[int]) -> None:
        """Compares what was found with what came. A token of p is a given one as often as that would be accepted."""
        if self._found is None:
            return
        found, size = self._found
        seen = min(len(found), len(tokens))
        same = next((i for i in range(seen) if found[i] != tokens[i]), seen)
        self._by_size[size].judged(seen, same)


class Candidate(NamedTuple):
    """Who may propose next, and what that promises."""

    proposer: Proposer
    offer: Offer

    @property
    def rate(self) -> float:
        """Tokens a second at the best width; 0 where that is not to draft."""
        width, rate = self.offer.best
        return rate if width else 0.0

    @property
    def tokens(self) -> float:
        """Tokens of a cycle that verifies all."""
        return emitted(self.offer.expected)[-1]


def proposer(drafter: Drafter) -> Proposer:
    """The drafter in one request."""
    return Lookup(drafter) if isinstance(drafter, PromptLookupDrafter) else Modelled(drafter)


def most_promising(proposers: Sequence[Proposer], session: TargetSession, costs: Costs, most: int) -> Candidate | None:
    """Who promises most tokens a second, or most tokens where costs are unknown; the first where others do not more."""
    found = [Candidate(each, offer) for each in proposers if (offer := each.offer(session, costs, most))]
    if len(found) == 1:
        return found[0]
    known = all(each.offer.curve for each in found)
    return max(found, key=lambda each: each.rate if known else each.tokens, default=None)
