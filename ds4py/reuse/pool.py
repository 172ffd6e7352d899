"""Live sessions, shared by conversations that come and go."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from ds4py.errors import RequestError
from ds4py.reuse.prefix import Ids, common_prefix, resume

if TYPE_CHECKING:
    from ds4py.cancelling import Cancel
    from ds4py.engine import Engine
    from ds4py.session import Session

SHARED = 16
"""Tokens in common that are worth keeping; fewer are evaluated again as fast."""

SAME = 4
"""A conversation goes on where a prompt agrees with the one before but for so many tokens, as where thinking begins."""


@dataclass(eq=False)
class Entry:
    """A session of the pool.

    Attributes:
        prompt: tokens of its latest request; what follows them was generated.
        used: when it was last given out, counted in requests.
        busy: whether somebody has it.
    """

    session: Session
    prompt: int = 0
    used: int = 0
    busy: bool = True


class Lease:
    """A session that somebody has for one request; leaving the context gives it back, live.

    Attributes:
        session: its state is the first `cached_tokens` of the ids that were asked for.
        cached_tokens: how many of them need no evaluation.
    """

    def __init__(self, pool: SessionPool, entry: Entry, cached_tokens: int) -> None:
        self.session = entry.session
        self.cached_tokens = cached_tokens
        self._pool, self._entry = pool, entry

    def release(self) -> None:
        """Gives the session back; once is enough."""
        self._pool.release(self._entry)

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class SessionPool:
    """Up to `sessions` live sessions of one engine; safe from several threads.

    Args:
        engine: whose sessions they are.
        sessions: how many may be open at once; each holds the memory of its context.
        context, kv_dtype: as for `Engine.session`.

    Raises RequestError for a number of sessions that is no number of them.
    """

    def __init__(
        self, engine: Engine, *, sessions: int = 4, context: int | None = None, kv_dtype: Literal["f16", "f32"] = "f16"
    ) -> None:
        if sessions < 1:
            raise RequestError(f"sessions is {sessions}, wanted 1 or more")
        self._engine = engine
        self._most = sessions
        self._kv_dtype: Literal["f16", "f32"] = kv_dtype
        self.context = engine.default_context if context is None else context
        """Positions of each session."""
        self._entries: list[Entry] = []
        self._requests = 0
        self._closed = False
        self._changed = threading.Condition()

    def acquire(self, ids: Ids, cancel: Cancel | None = None) -> Lease:
        """The session that holds the most of `ids`, gone back to where it agrees with them.

        Waits while all sessions are given out. A conversation that `ids` do not go on with is left as it is where
        another session can be had.

        Raises RequestError where `ids` leave no room in the context, Cancelled.
        """
        check_length(ids, self.context)
        entry = self._take(ids, cancel)
        try:
            entry.session.clear_cancel()
            cached = resume(entry.session, ids)
        except BaseException:
            self.release(entry)
            raise
        entry.prompt = len(ids)
        return Lease(self, entry, cached)

    def release(self, entry: Entry) -> None:
        """Takes a session back."""
        with self._changed:
            entry.busy = False
            if self._closed:
                entry.session.close()
            self._changed.notify()

    def close(self) -> None:
        """Closes the sessions; those that are given out when they come back."""
        with self._changed:
            self._closed = True
            for entry in self._entries:
                if not entry.busy:
                    entry.session.close()
            self._entries = []
            self._changed.notify_all()

    def _take(self, ids: Ids, cancel: Cancel | None) -> Entry:
        with self._changed:
            while (entry := self._choose(ids)) is None:
                self._changed.wait(0.1)
                if cancel:
                    cancel.check()
            self._requests += 1
            entry.busy, entry.used = True, self._requests
            return entry

    def _choose(self, ids: Ids) -> Entry | None:
        """The session for a request; None where all are given out."""
        if self._closed:
            raise RequestError("this pool is closed")
        free = sorted((each for each in self._entries if not each.busy), key=lambda each: each.used)
        shared = [common_prefix(each.session.history(), ids) for each in free]
        if free and (longest := max(shared)) >= SHARED:
            best = free[shared.index(longest)]
            if longest >= best.prompt - SAME:
                return best
        if len(self._entries) < self._most:
            return self._open()
        return free[0] if free else None

    def _open(self) -> Entry:
        entry = Entry(self._engine.session(context=self.context, kv_dtype=self._kv_dtype))
        self._entries.append(entry)
        return entry


def check_length(ids: Ids, context: int) -> None:
    """Raises RequestError unless a prompt is something and leaves room for an answer."""
    if not len(ids):
        raise RequestError("the prompt is empty: give at least one token")
    if len(ids) >= context:
        raise RequestError(
            f"the prompt has {len(ids)} tokens, and the context of {context} leaves no room for an answer: "
            "shorten it, or use a larger context"
        )
