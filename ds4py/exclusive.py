"""What only one thread may use at a time, and what stays in its process."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import NoReturn

from ds4py.errors import RequestError


class Exclusive:
    """Held by one thread at a time, which may enter again; another one gets RequestError instead of waiting."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RequestError("this session is already in a call: use one session for each thread, or wait")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


class StaysInProcess:
    """Refuses to be pickled or copied: it stands for memory and threads of this process."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} objects cannot be pickled or copied: they hold a loaded model's memory; "
            "open an Engine in each process, and hand messages or token ids over instead"
        )
