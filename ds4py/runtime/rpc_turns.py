"""Lets calls on a remote device take turns: ggml's RPC client has one connection to a server, for one call at a time.

Sessions on other devices run in parallel. Here a call waits for the one before it, and so do the ends of sessions and
models, which give memory back. The wait is Python's, so that nobody waits for it with the interpreter's lock held.
"""

from __future__ import annotations

import signal
import threading
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, cast

from ds4py import _native
from ds4py.errors import RequestError

CALLS = frozenset(
    (
        *("prefill", "evaluate", "logits", "sample", "rewind", "save", "copy_from"),
        *("draft", "draft_trace", "held_q", "verify", "verify_unread", "judge", "commit", "node_times"),
    )
)
"""The calls of a native session that may use its device."""

_locks: defaultdict[str, AbstractContextManager[Any]] = defaultdict(threading.RLock)


def turn(device: str) -> AbstractContextManager[Any]:
    """Returns the lock to hold during a call on `device`, names with commas between them; a null lock for local ones.

    From then on a signal that Python handles no longer interrupts system calls: ggml ends the process when one does.
    """
    remote = sorted({name.lower() for name in device.split(",") if is_remote(name)})
    if not remote:
        return nullcontext()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.siginterrupt(number, False)
    return _All([_locks[name] for name in remote])


def is_remote(devices: str) -> bool:
    """Whether one of the devices, names with commas between them, is an RPC server's."""
    return any(name.lower().startswith("rpc:") for name in devices.split(","))


class _All:
    """Takes several locks as one, always in the same order."""

    def __init__(self, locks: list[AbstractContextManager[Any]]) -> None:
        self._locks = locks

    def __enter__(self) -> None:
        for lock in self._locks:
            lock.__enter__()

    def __exit__(self, *error: object) -> None:
        for lock in reversed(self._locks):
            lock.__exit__(None, None, None)


def taking_turns(session: _native.Session, device: str) -> _native.Session:
    """Returns the session, or on a remote device a wrapper whose calls wait for their turn."""
    return cast(_native.Session, _Turns(session, device)) if is_remote(device) else session


def bare(session: _native.Session) -> _native.Session:
    """Returns the native session inside a wrapper, as arguments of native calls have to be."""
    return cast(_native.Session, session._session) if isinstance(session, _Turns) else session


class _Turns:
    """A wrapper of a native session whose calls take turns."""

    def __init__(self, session: _native.Session, device: str) -> None:
        self._session: _native.Session | None = session
        self._turn = turn(device)
        self._free = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._session, name)
        if name not in CALLS:
            return value

        @wraps(value)
        def waiting(*args: Any, **options: Any) -> Any:
            if not self._free.acquire(blocking=False):
                raise RequestError("this session is already in a call: use one session for each thread, or wait")
            try:
                with self._turn:
                    return value(*args, **options)
            finally:
                self._free.release()

        return waiting

    def __del__(self) -> None:
        with self._turn:
            self._session = None
