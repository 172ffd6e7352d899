"""The session that one request runs in: a leased one of the pool, or the caller's own."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic

from ds4py.prefix_cache.prefix import reusable_length, rewind_to_prefix
from ds4py.prefix_cache.protocols import Cancellation, Ids, SessionT, SessionT_co


class LeasedSession(Generic[SessionT_co]):
    """A session that is lent to one request; leaving the context, or `release`, gives it back.

    Attributes:
        session: its state holds the first `prefix_length` tokens of the prompt.
        prefix_length: the number of leading prompt tokens that are in the state.
        cached_tokens: how many of them were not evaluated for this request.
    """

    def __init__(
        self, session: SessionT_co, prefix_length: int, cached_tokens: int, give_back: Callable[[], None]
    ) -> None:
        self.session = session
        self.prefix_length = prefix_length
        self.cached_tokens = cached_tokens
        self._give_back: Callable[[], None] | None = give_back

    def release(self) -> None:
        """Gives the session back; a second call does nothing, since another request may have the session then."""
        give_back, self._give_back = self._give_back, None
        if give_back:
            give_back()

    def __enter__(self) -> LeasedSession[SessionT_co]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def caller_session(session: SessionT, ids: Ids, cancel: Cancellation) -> LeasedSession[SessionT]:
    """The caller's own session for one request on `ids`, rewound to where it agrees with them.

    It stays the caller's: there is nothing to give back. Raises Cancelled, which leaves the session rewound.
    """
    cached_tokens = reusable_length(session, ids)
    length = rewind_to_prefix(session, ids, lambda done, total: cancel.check())
    return LeasedSession(session, length, cached_tokens, lambda: None)
