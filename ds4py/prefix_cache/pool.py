"""Sessions that conversations share, so that what a prompt has in common with earlier ones is evaluated once."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Literal

from ds4py.errors import RequestError
from ds4py.prefix_cache.disk import DiskCache
from ds4py.prefix_cache.leased import LeasedSession
from ds4py.prefix_cache.prefix import (
    MIN_SHARED_TOKENS,
    check_length,
    prefix_length,
    reusable_length,
    rewind_to_prefix,
)
from ds4py.prefix_cache.protocols import Cancellation, Ids, Progress, SessionFactory, SessionT

DEFAULT_CACHE_BYTES = 16 << 30
"""The most that the files of saved sessions take where no limit is given: 16 GiB."""

DIFFERING_TAIL = 4
"""Last tokens of a prompt in which the next prompt of the same conversation may differ, as where thinking begins."""

MIN_SAVED_TOKENS = 64
"""The fewest tokens for which a session is saved to disk; fewer are evaluated again."""


@dataclass(eq=False)
class PooledSession(Generic[SessionT]):
    """A session of the pool and what the pool knows of it.

    Attributes:
        prompt_length: tokens of its latest request; what follows them was generated.
        breakpoints: positions in the prompt that other prompts may go on from.
        last_used: the number of the request that it was last lent to.
        lent: whether a request has it.
        on_disk: whether a file has its state as it is.
    """

    session: SessionT
    prompt_length: int = 0
    breakpoints: Sequence[int] = ()
    last_used: int = 0
    lent: bool = True
    on_disk: bool = False


class SessionPool(Generic[SessionT]):
    """Keeps up to `sessions` open sessions of one engine, and those saved to disk. Safe for use by several threads.

    A conversation continues in the session that holds it. A prompt that only begins as another does (with the same
    system text, or an earlier turn written anew) gets a copy of what they share, and the other session stays as it is.
    Where all sessions are in use, the least recently used one makes room; with `cache_dir` it is saved first, as are
    all sessions when the pool closes.

    Args:
        engine: opens the sessions.
        sessions: the most that are open at once; each holds the memory of its context.
        context, kv_dtype: as for `Engine.session`.
        cache_dir: folder of saved sessions; None saves none. Several processes may share it.
        cache_bytes: the most that the files take; the least recently used ones are removed.

    Attributes:
        context: positions of each session.

    Raises RequestError for fewer than one session, and for a `cache_dir` that cannot be written.
    """

    def __init__(
        self,
        engine: SessionFactory[SessionT],
        *,
        sessions: int = 4,
        context: int | None = None,
        kv_dtype: Literal["f16", "f32"] = "f16",
        cache_dir: str | os.PathLike[str] | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> None:
        if sessions < 1:
            raise RequestError(f"sessions is {sessions}, wanted 1 or more")
        self._engine = engine
        self._most = sessions
        self._kv_dtype: Literal["f16", "f32"] = kv_dtype
        self.context = engine.default_context if context is None else context
        identity = {**engine.identity, "threads": 0, "kv_dtype": kv_dtype}  # a state does not depend on the threads
        self._disk = None if cache_dir is None else DiskCache(cache_dir, cache_bytes, identity)
        self._pooled: list[PooledSession[SessionT]] = []
        self._requests = 0
        self._closed = False
        self._changed = threading.Condition()

    def acquire(
        self, ids: Ids, cancel: Cancellation | None = None, breakpoints: Sequence[int] = ()
    ) -> LeasedSession[SessionT]:
        """Lends the session that holds the most of `ids`, rewound to where it agrees with them.

        Waits while all sessions are lent.

        Args:
            ids: the prompt, int32 [n].
            cancel: stops the wait and the evaluation.
            breakpoints: positions in `ids` that other prompts may go on from.

        Raises RequestError where `ids` leave no room in the context or the pool is closed, Cancelled.
        """
        check_length(ids, self.context)
        progress = (lambda done, total: cancel.check()) if cancel else None
        chosen, source = self._lend(ids, cancel)
        try:
            chosen.session.clear_cancel()
            cached = self._prepare(chosen, source, ids)
            length = self._fill(chosen, source, ids, progress)
            chosen.prompt_length, chosen.breakpoints, chosen.on_disk = len(ids), breakpoints, False
            return LeasedSession(chosen.session, length, cached, lambda: self._give_back(chosen))
        except BaseException:
            self._give_back(chosen)
            raise
        finally:
            if source:
                self._give_back(source)

    def close(self) -> None:
        """Closes the sessions; those that are lent close when they come back."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            for each in self._pooled:
                if not each.lent:
                    self._retire(each)
            self._pooled = []
            self._changed.notify_all()

    def _give_back(self, pooled: PooledSession[SessionT]) -> None:
        with self._changed:
            pooled.lent = False
            if self._closed:
                self._retire(pooled)
            self._changed.notify()

    def _retire(self, pooled: PooledSession[SessionT]) -> None:
        self._save(pooled)
        pooled.session.close()

    def _lend(
        self, ids: Ids, cancel: Cancellation | None
    ) -> tuple[PooledSession[SessionT], PooledSession[SessionT] | None]:
        """Marks as lent a session for a request, and another one to copy from where there is one."""
        with self._changed:
            while (found := self._choose(ids)) is None:
                self._changed.wait(0.1)
                if cancel:
                    cancel.check()
            self._requests += 1
            chosen, source = found
            chosen.lent, chosen.last_used = True, self._requests
            if source:
                source.lent = True
            return chosen, source

    def _choose(self, ids: Ids) -> tuple[PooledSession[SessionT], PooledSession[SessionT] | None] | None:
        """A session for a request, and one to copy from; None where all are lent. RequestError in a closed pool."""
        if self._closed:
            raise RequestError("this pool is closed")
        free = sorted((each for each in self._pooled if not each.lent), key=lambda each: each.last_used)
        best = max(free, key=lambda each: reusable_length(each.session, ids), default=None)
        if best and reusable_length(best.session, ids) < MIN_SHARED_TOKENS:
            best = None
        if best and prefix_length(best.session, ids) >= best.prompt_length - DIFFERING_TAIL:
            return best, None
        if len(self._pooled) < self._most:
            return self._open(), best
        others = [each for each in free if each is not best]
        if others:
            return others[0], best
        return (best, None) if best else None

    def _open(self) -> PooledSession[SessionT]:
        pooled = PooledSession(self._engine.session(context=self.context, kv_dtype=self._kv_dtype))
        self._pooled.append(pooled)
        return pooled

    def _prepare(self, chosen: PooledSession[SessionT], source: PooledSession[SessionT] | None, ids: Ids) -> int:
        """Loads a saved session where it spares more evaluation; returns how many of `ids` need none."""
        cached = reusable_length((source or chosen).session, ids)
        saved = self._disk.find(ids, self.context) if self._disk else None
        continues = source is None and prefix_length(chosen.session, ids) >= max(
            chosen.prompt_length - DIFFERING_TAIL, 1
        )
        if not continues:
            self._save(chosen)
        if self._disk is None or saved is None or saved.reusable_length(ids) < cached + MIN_SHARED_TOKENS:
            return cached
        session = self._disk.load(saved, self._engine, self.context)
        if session is None:
            return cached
        chosen.session.close()
        chosen.session = session
        return max(cached, reusable_length(session, ids))

    def _fill(
        self,
        chosen: PooledSession[SessionT],
        source: PooledSession[SessionT] | None,
        ids: Ids,
        progress: Progress | None,
    ) -> int:
        """Puts what the pool has of `ids` into the session; returns how many leading tokens these are."""
        session = chosen.session
        if source and reusable_length(source.session, ids) > reusable_length(session, ids):
            position = min(prefix_length(source.session, ids), source.session.position)
            session.copy_from(source.session, position, progress=progress)
        return rewind_to_prefix(session, ids, progress)

    def _save(self, pooled: PooledSession[SessionT]) -> None:
        """Saves a session to disk, where there is a folder and it is long enough to be worth it."""
        if self._disk and not pooled.on_disk and len(pooled.session.history()) >= MIN_SAVED_TOKENS:
            pooled.session.clear_cancel()
            self._disk.save(pooled.session, pooled.breakpoints)
            pooled.on_disk = True
