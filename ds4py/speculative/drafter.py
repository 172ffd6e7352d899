"""The interface of everything that proposes tokens."""

from __future__ import annotations

from typing import Protocol

from ds4py.speculative.draft import Draft
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession


class Drafter(Protocol):
    """Who proposes. A drafter may be kept for many requests and sessions, one thread at a time."""

    name: str
    """For statistics."""

    def propose(self, session: TargetSession, request: DraftRequest, width: int) -> Draft | None:
        """Proposals for what follows `session.anchor`; the first `width` (1 to 15) at most are verified.

        None, or a draft without tokens, makes the cycle a plain step. An exception ends the generation, and leaves the
        session as it was after the last piece.
        """
