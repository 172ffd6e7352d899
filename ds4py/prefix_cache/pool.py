"""Sessions, shared by conversations that come and go."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from ds4py.errors import PromptTooLong, RequestError
from ds4py.prefix_cache.disk import StateCache
from ds4py.prefix_cache.prefix import SHARED, Ids, Progress, held, resume, reusable

if TYPE_CHECKING:
    from ds4py.generation.cancelling import Cancel
    from ds4py.runtime.engine import Engine
    from ds4py.runtime.session import Session

DEFAULT_CACHE_BYTES = 16 << 30

SAME = 4
"""A conversation goes on where a prompt agrees with the one before but for so many tokens, as where thinking begins."""


WORTH_KEEPING = 64
"""Tokens of a session that is put away; fewer are evaluated again."""


@dataclass(eq=False)
class Entry:
    """A session of the pool.

    Attributes:
        prompt: tokens of its latest request; what follows them was generated.
        breakpoints: positions in it that others may go on from.
        used: when it was last given out, counted in requests.
        busy: whether somebody has it.
        on_disk: whether it is there as it is.
    """

    session: Session
    prompt: int = 0
    breakpoints: Sequence[int] = ()
    used: int = 0
    busy: bool = True
    on_disk: bool = False


class LeasedSession:
    """A session that somebody has for one request; leaving the context gives it back, live.

    Attributes:
        session: its state is the first `held` of the ids that were asked for.
        held: how many of the ids are in it.
        cached_tokens: how many of them were not evaluated for it.
    """

    def __init__(self, pool: SessionPool, entry: Entry, held: int, cached_tokens: int) -> None:
        self.session = entry.session
        self.held = held
        self.cached_tokens = cached_tokens
        self._pool = pool
        self._entry: Entry | None = entry

    def release(self) -> None:
        """Gives the session back; again is of no effect, since somebody else may have it then."""
        entry, self._entry = self._entry, None
        if entry:
            self._pool.give_back(entry)

    def __enter__(self) -> LeasedSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class SessionPool:
    """Up to `sessions` live sessions of one engine, and those put away on disk; safe from several threads.

    A conversation goes on in the session that holds it. One that only begins as another does (with the same system
    text, or an earlier turn written anew) gets a copy of what they share, and the other stays as it is. Where no
    session is free of use, the one that was used longest ago makes room; with `cache_dir` it is put away first, as are
    all when the pool closes.

    Args:
        engine: whose sessions they are.
        sessions: how many may be open at once; each holds the memory of its context.
        context, kv_dtype: as for `Engine.session`.
        cache_dir: folder of sessions that were put away; None has none. Several processes may share it.
        cache_bytes: what its files may take; those that were not used for the longest time go.

    Raises RequestError for a number of sessions that is no number of them, and a `cache_dir` that cannot be written.
    """

    def __init__(
        self,
        engine: Engine,
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
        """Positions of each session."""
        self._cache = None if cache_dir is None else StateCache(cache_dir, cache_bytes, identity(engine, kv_dtype))
        self._entries: list[Entry] = []
        self._requests = 0
        self._closed = False
        self._changed = threading.Condition()

    def acquire(self, ids: Ids, cancel: Cancel | None = None, breakpoints: Sequence[int] = ()) -> LeasedSession:
        """A session that holds as much of `ids` as any does, gone back to where it agrees with them.

        Waits while all sessions are given out. `breakpoints` are positions in `ids` that other prompts may go on from.

        Raises RequestError where `ids` leave no room in the context, Cancelled.
        """
        check_length(ids, self.context)
        progress = (lambda done, total: cancel.check()) if cancel else None
        entry, source = self._take(ids, cancel)
        try:
            entry.session.clear_cancel()
            cached = self._prepare(entry, source, ids)
            held = self._bring(entry, source, ids, progress)
            entry.prompt, entry.breakpoints, entry.on_disk = len(ids), breakpoints, False
            return LeasedSession(self, entry, held, cached)
        except BaseException:
            self.give_back(entry)
            raise
        finally:
            if source:
                self.give_back(source)

    def give_back(self, entry: Entry) -> None:
        """Takes a session back."""
        with self._changed:
            entry.busy = False
            if self._closed:
                self._put_away(entry)
                entry.session.close()
            self._changed.notify()

    def close(self) -> None:
        """Closes the sessions; those that are given out when they come back."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            for entry in self._entries:
                if not entry.busy:
                    self._put_away(entry)
                    entry.session.close()
            self._entries = []
            self._changed.notify_all()

    def _take(self, ids: Ids, cancel: Cancel | None) -> tuple[Entry, Entry | None]:
        """A session for a request, and another one to copy from; both are given out."""
        with self._changed:
            while (chosen := self._choose(ids)) is None:
                self._changed.wait(0.1)
                if cancel:
                    cancel.check()
            self._requests += 1
            entry, source = chosen
            entry.busy, entry.used = True, self._requests
            if source:
                source.busy = True
            return entry, source

    def _choose(self, ids: Ids) -> tuple[Entry, Entry | None] | None:
        """As `_take`; None where all are given out."""
        if self._closed:
            raise RequestError("this pool is closed")
        free = sorted((each for each in self._entries if not each.busy), key=lambda each: each.used)
        best = max(free, key=lambda each: reusable(each.session, ids), default=None)
        if best and reusable(best.session, ids) < SHARED:
            best = None
        if best and held(best.session, ids) >= best.prompt - SAME:
            return best, None
        if len(self._entries) < self._most:
            return self._open(), best
        others = [each for each in free if each is not best]
        if others:
            return others[0], best
        return (best, None) if best else None

    def _open(self) -> Entry:
        entry = Entry(self._engine.session(context=self.context, kv_dtype=self._kv_dtype))
        self._entries.append(entry)
        return entry

    def _prepare(self, entry: Entry, source: Entry | None, ids: Ids) -> int:
        """Loads a session that was put away, where it holds more; returns how many of `ids` need no evaluation."""
        cached = reusable((source or entry).session, ids)
        saved = self._cache.find(ids, self.context) if self._cache else None
        goes_on = source is None and held(entry.session, ids) >= max(entry.prompt - SAME, 1)
        if not goes_on:
            self._put_away(entry)
        if self._cache is None or saved is None or saved.reusable(ids) < cached + SHARED:
            return cached
        session = self._cache.load(saved, self._engine, self.context)
        if session is None:
            return cached
        entry.session.close()
        entry.session = session
        return max(cached, reusable(session, ids))

    def _bring(self, entry: Entry, source: Entry | None, ids: Ids, progress: Progress | None) -> int:
        """Puts what there is of `ids` into the session; returns how much."""
        session = entry.session
        if source and reusable(source.session, ids) > reusable(session, ids):
            session.copy_from(
                source.session, min(held(source.session, ids), source.session.position), progress=progress
            )
        return resume(session, ids, progress)

    def _put_away(self, entry: Entry) -> None:
        """To disk, where there is a place and it is worth one."""
        if self._cache and not entry.on_disk and len(entry.session.history()) >= WORTH_KEEPING:
            entry.session.clear_cancel()
            self._cache.keep(entry.session, entry.breakpoints)
            entry.on_disk = True


def identity(engine: Engine, kv_dtype: str) -> dict[str, str | int]:
    """What a saved session is bound to; the number of threads is nothing that it shows."""
    return {**engine.identity, "threads": 0, "kv_dtype": kv_dtype}


def check_length(ids: Ids, context: int) -> None:
    """Raises RequestError unless a prompt is something, PromptTooLong unless it leaves room for an answer."""
    if not len(ids):
        raise RequestError("the prompt is empty: give at least one token")
    if len(ids) >= context:
        raise PromptTooLong(
            f"the prompt has {len(ids)} tokens, and the context of {context} leaves no room for an answer: "
            "shorten it, or use a larger context"
        )
