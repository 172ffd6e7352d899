"""Cancelling a request from another thread, whatever it is doing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ds4py.errors import Cancelled

if TYPE_CHECKING:
    from ds4py.runtime.session import Session


class Cancel:
    """Whether a request is to stop; it may be asked before the request has a session, and between its calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Session | None = None
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
    def reaching(self, session: Session) -> Iterator[None]:
        """While this lasts, `ask` reaches the session's running call; afterwards the session knows nothing of it."""
        with self._lock:
            self._session = session
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._session = None
                session.clear_cancel()
