"""The cycle of speculative decoding: draft, verify and accept (docs/dspark.md section 3.1).

A cycle without proposals is plain decoding.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from ds4py.errors import RequestError
from ds4py.sampling.logprobs import TokenLogprobs, logprobs
from ds4py.speculative.accept import accept
from ds4py.speculative.costs import Costs
from ds4py.speculative.draft import Draft, Floats
from ds4py.speculative.draft_length import DraftLengthPolicy
from ds4py.speculative.drafter import Drafter
from ds4py.speculative.proposers import Proposer, ProposerEstimate, most_promising, proposer
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.stats import Cycle, Speculation
from ds4py.speculative.target import TargetSession

AcceptanceRule = Literal["token", "match", "block"]

NO_PROPOSALS = Draft.point_mass(np.empty(0, np.int32))


def check_rule(rule: str) -> None:
    """Raises RequestError for a rule that does not exist."""
    if rule not in get_args(AcceptanceRule):
        raise RequestError(f"accept is {rule!r}, wanted 'token', 'match' or 'block'")


class Proposed(NamedTuple):
    """The proposals of a cycle, and where they come from.

    Attributes:
        draft: the admitted proposals, which are to be verified.
        whole: all proposals that were drafted; None where nothing was drafted.
        by: the most promising proposer and its estimate; None where no proposer had one.
        asked: the proposer that drafted; None where none did.
        seconds: the time of drafting.
    """

    draft: Draft = NO_PROPOSALS
    whole: Draft | None = None
    by: ProposerEstimate | None = None
    asked: Proposer | None = None
    seconds: float = 0.0


NOBODY = Proposed()


class Loop:
    """The cycles of one request over a session.

    Args:
        session: the session that is read and verified in; the caller commits.
        request: the settings of the request.
        drafters: who may propose; of several, the most promising one is asked each cycle.
        draft_length: the policy of draft lengths.
        rule: the rule of acceptance.
        costs: the engine's costs, to which each cycle adds; None starts without any.

    Raises RequestError for a rule that does not exist.

    Attributes:
        logprobs: the log probabilities of the latest cycle's tokens; None where the request does not ask for them.
        stats: what the cycles did.
    """

    def __init__(
        self,
        session: TargetSession,
        request: DraftRequest,
        drafters: Sequence[Drafter],
        draft_length: DraftLengthPolicy,
        rule: AcceptanceRule = "token",
        costs: Costs | None = None,
    ) -> None:
        check_rule(rule)
        self._session = session
        self._request = request
        self._proposers = [proposer(each) for each in drafters]
        self._draft_length = draft_length.start()
        self._rule: AcceptanceRule = rule
        self._costs = Costs() if costs is None else costs
        # Whether the device accepts where it can: the rule decides one by one, and nobody needs the logits here.
        self._on_device = (
            (rule == "token" or request.arg_max) and not request.needs_logits and session.accepts_on_device
        )
        self._resting = 0  # the number of coming cycles in which no proposer is asked
        self._plain = 0.0  # the seconds of a plain step; 0 while unknown
        self.logprobs: tuple[TokenLogprobs, ...] | None = None
        self.stats = Speculation("+".join(each.name for each in drafters) or "off")

    def cycle(self, remaining: int) -> list[int]:
        """Returns the next tokens, 1 to `remaining`: accepted proposals, and the recovered token or bonus after them.

        It commits nothing, so that the caller can see first where the text ends. An exception leaves the session as it
        was.
        """
        if self._session.anchor is None:  # a prompt's last logits give the first token without a forward
            return self._emitted([self._first()])
        proposed = self._propose(remaining - 1)
        to_verify = decided = proposed.draft
        if guide := self._request.guide:
            to_verify, decided = self._within_grammar(to_verify)
        started = time.perf_counter()
        logits = self._verify(to_verify)
        verified = time.perf_counter()
        rows = guide.rows(logits, len(decided)) if guide and logits is not None else logits
        masked = time.perf_counter()
        accepted, token = self._accept(rows, decided)
        cycle = self._cycle(proposed, len(to_verify), accepted, verified - started, time.perf_counter() - masked)
        tokens = [*decided.tokens[:accepted].tolist(), token]
        self._keep_logprobs(logits, tokens)
        self._learn(proposed, cycle, len(decided), tokens)
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
            request.guide.allowed(NO_PROPOSALS.tokens)
            token = self._accept(request.guide.rows(session.logits()[None], 0), NO_PROPOSALS)[1]
        if request.logprobs is not None:
            self._keep_logprobs(session.logits()[None], [token])
        return token

    def _within_grammar(self, draft: Draft) -> tuple[Draft, Draft]:
        """Returns the proposals to verify, which the grammar allows, and those to decide on: these and the one after.

        The first proposal that is not allowed has p = 0 and is rejected by the rule (docs/dspark.md section 3.11).
        """
        assert self._request.guide
        allowed = self._request.guide.allowed(draft.tokens)
        return draft.first(allowed), draft.first(allowed + 1)

    def _emitted(self, tokens: list[int]) -> list[int]:
        """Returns the tokens, after the grammar has advanced by them."""
        if self._request.guide:
            self._request.guide.advance(tokens)
        return tokens

    def _propose(self, limit: int) -> Proposed:
        """Returns at most `limit` proposals to verify.

        The draft length is chosen before they are known, or from left to right (docs/dspark.md section 3.7).
        """
        if self._resting or not limit or not self._proposers:
            self._resting = max(0, self._resting - 1)
            return NOBODY
        by = most_promising(self._proposers, self._session, self._costs, limit)
        if by is None:
            return NOBODY
        self._plain = by.estimate.curve.plain if by.estimate.curve else 0.0
        if not (draft_length := min(self._draft_length.choose(by.estimate), by.estimate.max_draft_length)):
            self._resting = self._draft_length.rest
            return Proposed(by=by)
        started = time.perf_counter()
        whole = by.proposer.propose(self._session, self._request, draft_length) or NO_PROPOSALS
        draft = whole.first(draft_length)
        if draft.confidence is not None:
            calibrated = by.proposer.calibrated(draft.confidence.tolist())
            draft = draft.first(self._draft_length.admit(by.estimate, calibrated))
        return Proposed(draft, whole, by, by.proposer, time.perf_counter() - started)

    def _keep_logprobs(self, logits: Floats | None, tokens: Sequence[int]) -> None:
        """Keeps the log probabilities of a cycle's tokens, where they are asked for."""
        if self._request.logprobs is not None and logits is not None:
            self.logprobs = logprobs(logits, tokens, self._request.logprobs)

    def _verify(self, draft: Draft) -> Floats | None:
        """Returns the verify's logits, float32 [k + 1, vocab]; None where they stay on a device, which accepts."""
        if self._on_device and self._request.fits_device(draft):
            self._session.verify_on_device(draft.tokens)
            return None
        return self._session.verify(draft.tokens)

    def _accept(self, logits: Floats | None, draft: Draft) -> tuple[int, int]:
        if logits is None:
            return self._session.accept(draft, self._request.temperature or 0.0, self._request.rng)
        history = self._session.history() if self._request.penalises else ()
        return accept(logits, draft, self._request.sampler, self._request.rng, history=history, rule=self._rule)

    def _cycle(self, proposed: Proposed, draft_length: int, accepted: int, verify: float, accept: float) -> Cycle:
        asked = proposed.asked
        if asked is None:
            return Cycle(draft_length, accepted, proposed.seconds, verify, accept, plain_seconds=self._plain)
        confidence = proposed.draft.confidence
        return Cycle(
            draft_length=draft_length,
            accepted=accepted,
            draft_seconds=proposed.seconds,
            verify_seconds=verify,
            accept_seconds=accept,
            confidence=() if confidence is None else tuple(confidence[:draft_length].tolist()),
            drafter=asked.drafter.name,
            tried=self._draft_length.trying,
            plain_seconds=self._plain,
        )

    def _learn(self, proposed: Proposed, cycle: Cycle, decided: int, tokens: Sequence[int]) -> None:
        """Hands a cycle that decided on `decided` proposals to the costs, the proposers, the policy and the stats."""
        asked = proposed.asked
        self._add_costs(cycle, asked.priced_as if asked else None)
        for each in self._proposers if proposed.by else ():  # without an estimate there is nothing to learn
            each.learn(proposed.whole if each is asked else None, decided, tokens)
        self._draft_length.observe(cycle)
        self.stats.cycles.append(cycle)

    def _add_costs(self, cycle: Cycle, drafter: str | None) -> None:
        """Adds to the engine's costs; the first step of a kind in a session builds its graph and does not count."""
        depth, warm = self._session.position, self._session.warm
        if cycle.draft_length in warm:
            self._costs.add_verify(depth, cycle.draft_length, cycle.verify_seconds + cycle.accept_seconds)
        if drafter and drafter in warm:
            self._costs.add_draft(depth, drafter, cycle.draft_seconds)
        warm.add(cycle.draft_length)
        if drafter:
            warm.add(drafter)
