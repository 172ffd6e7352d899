"""Cancels a request from another thread, in whatever call the request is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ds4py.errors import Cancelled


class Cancellable(Protocol):
    """A session whose running call can be stopped."""

    def cancel(self) -> None:
        """Stops the running call; any thread may call it."""

    def clear_cancel(self) -> None:
        """Takes back a cancel that no call has answered yet."""


class Cancel:
    """The switch that stops one request; it works before the request has a session, and between its calls.

    Attributes:
        asked: whether somebody has asked the request to stop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Cancellable | None = None
        self.asked = False

    def ask(self) -> None:
        """Stops the request at its next check, and the call that its session is in."""
        with self._lock:
            self.asked = True
            if self._session:
                self._session.cancel()

    def check(self) -> None:
        """Raises Cancelled where somebody asked."""
        if self.asked:
            raise Cancelled("the request was cancelled")

    @contextmanager
    def reaching(self, session: Cancellable) -> Iterator[None]:
        """Lets `ask` stop the session's running call inside this context; on leaving, the session's cancel is cleared.

        Raises Cancelled where somebody asked before.
        """
        with self._lock:
            self._session = session
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._session = None
                session.clear_cancel()
