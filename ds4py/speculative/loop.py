"""The cycle of speculative decoding: draft, verify, accept. A cycle without proposals is plain decoding."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from ds4py.errors import RequestError
from ds4py.sampling.logprobs import TokenLogprobs, logprobs
from ds4py.speculative.accept import accept
from ds4py.speculative.costs import Costs
from ds4py.speculative.draft import Draft, Drafter, DraftRequest, Floats
from ds4py.speculative.draft_length import Width
from ds4py.speculative.proposers import Candidate, Proposer, most_promising, proposer
from ds4py.speculative.stats import Cycle, Speculation

if TYPE_CHECKING:
    from ds4py.runtime.session import Session

Rule = Literal["token", "match", "block"]

NOTHING = Draft.point_mass(np.empty(0, np.int32))


def check_rule(rule: str) -> None:
    """Raises RequestError for a rule that does not exist."""
    if rule not in get_args(Rule):
        raise RequestError(f"accept is {rule!r}, wanted 'token', 'match' or 'block'")


class Proposed(NamedTuple):
    """What a cycle verifies.

    Attributes:
        draft: the admitted proposals.
        whole: all that were drafted; None where nobody was asked.
        by: who promised most, and what; None where nobody was asked.
        asked: who drafted; None where nobody did.
        seconds: of drafting.
    """

    draft: Draft = NOTHING
    whole: Draft | None = None
    by: Candidate | None = None
    asked: Proposer | None = None
    seconds: float = 0.0


NOBODY = Proposed()


class Loop:
    """The cycles of one request over a session.

    `costs` are the engine's: each cycle adds to them. Raises RequestError for a rule that does not exist.
    """

    def __init__(
        self,
        session: Session,
        request: DraftRequest,
        drafters: Sequence[Drafter],
        width: Width,
        rule: Rule = "token",
        costs: Costs | None = None,
    ) -> None:
        check_rule(rule)
        self._session = session
        self._request = request
        self._proposers = [proposer(each) for each in drafters]
        self._width = width.start()
        self._rule: Rule = rule
        self._costs = Costs() if costs is None else costs
        # Whether the device is to judge, where it can: one by one, and where nobody needs the rows here.
        self._on_device = (rule == "token" or request.arg_max) and not request.needs_logits and session.accepts_on_device
        self._resting = 0  # cycles for which nobody is asked
        self._plain = 0.0  # seconds of a plain step; 0 while unknown
        self.logprobs: tuple[TokenLogprobs, ...] | None = None
        """Of the latest cycle's tokens; None where the request does not ask for them."""
        self.stats = Speculation("+".join(each.name for each in drafters) or "off")

    def cycle(self, remaining: int) -> list[int]:
        """The next tokens, 1 to `remaining`: accepted proposals, and the recovered or bonus token after them.

        Commits nothing, so that the caller can see first where the text ends; an exception changes nothing.
        """
        if self._session.anchor is None:  # after a prompt its logits are there, and need no forward
            return self._emitted([self._first()])
        proposed = self._propose(remaining - 1)
        wanted = judged = proposed.draft
        if guide := self._request.guide:
            wanted, judged = self._within_grammar(wanted)
        started = time.perf_counter()
        logits = self._verify(wanted)
        verified = time.perf_counter()
        rows = guide.rows(logits, len(judged)) if guide and logits is not None else logits
        masked = time.perf_counter()
        accepted, token = self._accept(rows, judged)
        cycle = self._cycle(proposed, len(wanted), accepted, verified - started, time.perf_counter() - masked)
        tokens = [*judged.tokens[:accepted].tolist(), token]
        self._look_up(logits, tokens)
        self._learn(proposed, cycle, len(judged), tokens)
        return self._emitted(tokens)

    @property
    def complete(self) -> bool:
        """Whether a grammar ends the text after the latest cycle."""
        guide = self._request.guide
        return guide is not None and guide.complete

    def _first(self) -> int:
        request, session = self._request, self._session
        if request.guide is None:
            token = session.sample(request.sampler, request.rng)
        else:
            request.guide.allowed(NOTHING.tokens)
            token = self._accept(request.guide.rows(session.logits()[None], 0), NOTHING)[1]
        if request.logprobs is not None:
            self._look_up(session.logits()[None], [token])
        return token

    def _within_grammar(self, draft: Draft) -> tuple[Draft, Draft]:
        """The proposals that are to be verified, and those to be judged: these, and the first that is not allowed."""
        assert self._request.guide
        allowed = self._request.guide.allowed(draft.tokens)
        return draft.first(allowed), draft.first(allowed + 1)

    def _emitted(self, tokens: list[int]) -> list[int]:
        """The same; a grammar follows them."""
        if self._request.guide:
            self._request.guide.advance(tokens)
        return tokens

    def _propose(self, most: int) -> Proposed:
        """At most `most` proposals to verify; the width is chosen before they are known, or from left to right."""
        if self._resting or not most or not self._proposers:
            self._resting = max(0, self._resting - 1)
            return NOBODY
        by = most_promising(self._proposers, self._session, self._costs, most)
        if by is None:
            return NOBODY
        self._plain = by.offer.curve.plain if by.offer.curve else 0.0
        if not (width := min(self._width.choose(by.offer), by.offer.most)):
            self._resting = self._width.rest
            return Proposed(by=by)
        started = time.perf_counter()
        whole = by.proposer.propose(self._session, self._request, width) or NOTHING
        draft = whole.first(width)
        if draft.confidence is not None:
            calibrated = by.proposer.calibrated(draft.confidence.tolist())
            draft = draft.first(self._width.admit(by.offer, calibrated))
        return Proposed(draft, whole, by, by.proposer, time.perf_counter() - started)

    def _look_up(self, logits: Floats | None, tokens: Sequence[int]) -> None:
        """What the target made of a cycle's tokens, where that is asked for."""
        if self._request.logprobs is not None and logits is not None:
            self.logprobs = logprobs(logits, tokens, self._request.logprobs)

    def _verify(self, draft: Draft) -> Floats | None:
        """The target's rows; None where the device judges them and nobody needs them here."""
        if self._on_device and self._request.accepted_on_device(draft):
            self._session.verify_on_device(draft.tokens)
            return None
        return self._session.verify(draft.tokens)

    def _accept(self, logits: Floats | None, draft: Draft) -> tuple[int, int]:
        if logits is None:
            return self._session.accept(draft, self._request.temperature or 0.0, self._request.rng)
        history = self._session.history() if self._request.penalises else ()
        return accept(logits, draft, self._request.sampler, self._request.rng, history=history, rule=self._rule)

    def _cycle(self, proposed: Proposed, width: int, accepted: int, verify: float, accept: float) -> Cycle:
        asked = proposed.asked
        if asked is None:
            return Cycle(width, accepted, proposed.seconds, verify, accept, plain_seconds=self._plain)
        confidence = proposed.draft.confidence
        return Cycle(
            width=width,
            accepted=accepted,
            draft_seconds=proposed.seconds,
            verify_seconds=verify,
            accept_seconds=accept,
            confidence=() if confidence is None else tuple(confidence[:width].tolist()),
            drafter=asked.drafter.name,
            tried=self._width.trying,
            plain_seconds=self._plain,
        )

    def _learn(self, proposed: Proposed, cycle: Cycle, judged: int, tokens: Sequence[int]) -> None:
        """Everyone learns from a cycle in which so many proposals were judged: costs, proposers, the policy."""
        asked = proposed.asked
        self._add_costs(cycle, asked.priced_as if asked else None)
        for each in self._proposers if proposed.by else ():  # where nobody was asked, nobody learns
            each.learn(proposed.whole if each is asked else None, judged, tokens)
        self._width.observe(cycle)
        self.stats.cycles.append(cycle)

    def _add_costs(self, cycle: Cycle, drafter: str | None) -> None:
        """Adds to the engine's; the first step of its kind in a session builds its graph, and does not count."""
        depth, warm = self._session.position, self._session.warm
        if cycle.width in warm:
            self._costs.add_verify(depth, cycle.width, cycle.verify_seconds + cycle.accept_seconds)
        if drafter and drafter in warm:
            self._costs.add_draft(depth, drafter, cycle.draft_seconds)
        warm.add(cycle.width)
        if drafter:
            warm.add(drafter)
