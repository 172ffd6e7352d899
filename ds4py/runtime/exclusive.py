"""A lock that refuses a second thread instead of letting it wait."""

from __future__ import annotations

import threading
from types import TracebackType

from ds4py.errors import RequestError


class Exclusive:
    """A lock of one thread, which may enter again; another thread gets RequestError instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RequestError("this session is already in a call: use one session for each thread, or wait")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
