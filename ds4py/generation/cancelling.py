"""Cancels a request from another thread, whichever call it is in."""

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
        """Withdraws a cancel that no call has responded to yet."""


class Cancel:
    """Stops one request, also before it has a session and between the calls of its session.

    Attributes:
        asked: whether the request was asked to stop.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Cancellable | None = None
        self.asked = False

    def ask(self) -> None:
        """Stops the request at its next check, and its session's running call."""
        with self._lock:
            self.asked = True
            if self._session:
                self._session.cancel()

    def check(self) -> None:
        """Raises Cancelled if the request was asked to stop."""
        if self.asked:
            raise Cancelled("the request was cancelled")

    @contextmanager
    def reaching(self, session: Cancellable) -> Iterator[None]:
        """Lets `ask` stop the session's running call inside this context. Clears the session's cancel on leaving.

        Raises Cancelled if the request was asked to stop before.
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
