"""The cycle of speculative decoding: draft, verify, accept. A cycle without proposals is plain decoding."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ds4py.errors import RequestError
from ds4py.speculative.accept import accept
from ds4py.speculative.draft import Draft, Drafter, Floats, Request
from ds4py.speculative.stats import Cycle, Speculation
from ds4py.speculative.width import Width

if TYPE_CHECKING:
    from ds4py.session import Session

Rule = Literal["token", "match", "block"]

NOTHING = Draft.point_mass(np.empty(0, np.int32))


class Loop:
    """The cycles of one request over a session. Raises RequestError for a rule that does not exist."""

    def __init__(
        self, session: Session, request: Request, drafter: Drafter | None, width: Width, rule: Rule = "token"
    ) -> None:
        if rule not in get_args(Rule):
            raise RequestError(f"accept is {rule!r}, wanted 'token', 'match' or 'block'")
        self._session = session
        self._request = request
        self._drafter = drafter
        self._width = width
        self._rule: Rule = rule
        self.stats = Speculation(drafter.name if drafter else "off")

    def cycle(self, remaining: int) -> list[int]:
        """The next tokens, 1 to `remaining`: accepted proposals, and the correction or bonus after them.

        Commits nothing, so that the caller can see first where the text ends; an exception changes nothing.
        """
        if self._session.anchor is None:  # after a prompt its logits are there, and need no forward
            return [self._session.sample(self._request.sampler, self._request.rng)]
        draft, draft_seconds = self._draft(remaining - 1)
        started = time.perf_counter()
        logits = self._session.verify(draft.tokens)
        verified = time.perf_counter()
        accepted, token = self._accept(logits, draft)
        self.stats.cycles.append(
            Cycle(
                width=len(draft),
                accepted=accepted,
                draft_seconds=draft_seconds,
                verify_seconds=verified - started,
                accept_seconds=time.perf_counter() - verified,
                confidence=() if draft.confidence is None else tuple(draft.confidence.tolist()),
            )
        )
        return [*draft.tokens[:accepted].tolist(), token]

    def _draft(self, most: int) -> tuple[Draft, float]:
        """At most `most` proposals to verify, and the seconds they took; the width is chosen before they are known."""
        if self._drafter is None or not (width := min(self._width.choose(), most)):
            return NOTHING, 0.0
        started = time.perf_counter()
        draft = self._drafter.propose(self._session, self._request, width)
        seconds = time.perf_counter() - started
        return (draft.first(width) if draft else NOTHING), seconds

    def _accept(self, logits: Floats, draft: Draft) -> tuple[int, int]:
        history = self._session.history() if self._request.penalises else ()
        return accept(logits, draft, self._request.sampler, self._request.rng, history=history, rule=self._rule)
