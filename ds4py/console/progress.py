"""Shows progress bars on standard error, on a terminal only, and only for work that takes a while."""

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

PATIENCE = 0.5
"""Seconds of work before a bar appears."""


class Bar:
    """A progress bar as a context manager. `update(done, total)` draws it, and leaving the context removes it."""

    def __init__(self, label: str, *, quiet: bool = False) -> None:
        self._label = label
        self._enabled = not quiet and sys.stderr.isatty()
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task: TaskID

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: "TracebackType | None"
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the bar from the screen for good. Further calls do nothing."""
        self._enabled = False
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def update(self, done: float, total: float = 1.0) -> None:
        """Shows that `done` of `total` is done, in any unit."""
        if not self._enabled or time.monotonic() - self._started < PATIENCE:
            return
        if self._progress is None:
            self._start(total)
        assert self._progress is not None
        self._progress.update(self._task, completed=done, total=total)

    def _start(self, total: float) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(self._label, total=total)
        self._progress.start()
