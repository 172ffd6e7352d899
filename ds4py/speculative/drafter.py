"""The interface of everything that proposes tokens."""

from __future__ import annotations

from typing import Protocol

from ds4py.speculative.draft import Draft
from ds4py.speculative.request import DraftRequest
from ds4py.speculative.target import TargetSession


class Drafter(Protocol):
    """Something that proposes tokens. It may be kept for many requests and sessions, one thread at a time.

    Attributes:
        name: the drafter's name in statistics.
    """

    name: str

    def propose(self, session: TargetSession, request: DraftRequest, draft_length: int) -> Draft | None:
        """Returns proposals for what follows `session.anchor`, of which at most `draft_length` (1 to 15) are verified.

        None, or a draft without tokens, makes the cycle a plain step. An exception ends the generation, and leaves the
        session as it was after the last piece.
        """
