"""Finds how much of a prompt a session already holds, and rewinds it to that position."""

from __future__ import annotations

import numpy as np

from ds4py.errors import PromptTooLong, RequestError
from ds4py.prefix_cache.common_prefix import common_prefix
from ds4py.prefix_cache.protocols import CachedSession, Ids, Progress

MIN_SHARED_TOKENS = 16
"""The fewest common tokens that are worth keeping; fewer are evaluated again as fast."""


def check_length(ids: Ids, context: int) -> None:
    """Raises RequestError for an empty prompt, and PromptTooLong for one that fills the context."""
    if not len(ids):
        raise RequestError("the prompt is empty: give at least one token")
    if len(ids) >= context:
        raise PromptTooLong(
            f"the prompt has {len(ids)} tokens, and the context of {context} leaves no room for an answer: "
            "shorten it, or use a larger context"
        )


def cache_breakpoints(ids: Ids, user: int | None) -> list[int]:
    """Positions at which other prompts are likely to differ from this one, ascending.

    These are the first user turn, which follows the system text, and the end of the prompt. A session keeps a
    checkpoint at each, so that another prompt can go on from there.

    Args:
        ids: the prompt, int32 [n].
        user: the id of the token that opens a user turn; None where the vocabulary has none.
    """
    turns = np.flatnonzero(np.asarray(ids) == user)[:1].tolist() if user is not None else []
    return [*(at for at in turns if at >= MIN_SHARED_TOKENS), len(ids)]


def prefix_length(session: CachedSession, ids: Ids) -> int:
    """The number of leading tokens of `ids` that the session holds; the token emitted last counts.

    It is at most `len(ids) - 1`: the last token is always evaluated, because the request asks for what follows it.
    """
    return min(common_prefix(session.history(), ids), len(ids) - 1)


def reusable_length(session: CachedSession, ids: Ids) -> int:
    """The number of leading tokens of `ids` that this session need not evaluate."""
    kept = prefix_length(session, ids)
    return kept if kept > session.position else session.resume_point(kept)


def rewind_to_prefix(session: CachedSession, ids: Ids, progress: Progress | None = None) -> int:
    """Rewinds `session` to where it last agrees with `ids`; returns how many leading tokens it then holds.

    Raises Cancelled, or what `progress` raises, where the session evaluates tokens before that place again.
    """
    kept = prefix_length(session, ids)
    if kept <= session.position:
        session.rewind(kept, progress=progress)
    return kept
