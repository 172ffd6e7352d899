"""How far a session already holds a prompt."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ds4py.prefix_cache.common_prefix import common_prefix

if TYPE_CHECKING:
    from ds4py.generation.cancelling import Cancel
    from ds4py.runtime.session import Session

SHARED = 16
"""Tokens in common that are worth keeping; fewer are evaluated again as fast."""

Ids = npt.NDArray[np.int32]
Progress = Callable[[int, int], None]


def cache_breakpoints(ids: Ids, user: int | None) -> list[int]:
    """Where other prompts are likely to differ: at the first user turn, behind what the system says, and at the end."""
    turns = np.flatnonzero(np.asarray(ids) == user)[:1].tolist() if user is not None else []
    return [*(at for at in turns if at >= SHARED), len(ids)]


def held(session: Session, ids: Ids) -> int:
    """How many of `ids` the session holds; the token emitted last counts.

    Never all of them: the last is evaluated again, since what follows it is asked for.
    """
    return min(common_prefix(session.history(), ids), len(ids) - 1)


def reusable(session: Session, ids: Ids) -> int:
    """How many of `ids` need no evaluation in this session."""
    kept = held(session, ids)
    return kept if kept > session.position else session.resume_point(kept)


def resume(session: Session, ids: Ids, progress: Progress | None = None) -> int:
    """Goes back to where `session` last agrees with `ids`; returns how many of them it then holds.

    Raises Cancelled, or what `progress` raises, where tokens before that place are evaluated again.
    """
    kept = held(session, ids)
    if kept <= session.position:
        session.rewind(kept, progress=progress)
    return kept


class CallerSession:
    """A caller's own session for one request, gone back to where it agrees with `ids`; it stays the caller's.

    Attributes:
        session: the caller's.
        held: how many of the ids are in it.
        cached_tokens: how many of them were not evaluated for it.
    """

    def __init__(self, session: Session, ids: Ids, cancel: Cancel) -> None:
        self.session = session
        self.cached_tokens = reusable(session, ids)
        self.held = resume(session, ids, lambda done, total: cancel.check())

    def __enter__(self) -> CallerSession:
        return self

    def __exit__(self, *_: object) -> None:
        pass
