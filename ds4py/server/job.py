"""A job: one answer that a thread computes while the event loop sends it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from contextlib import closing
from typing import TYPE_CHECKING, Final

from ds4py.errors import Cancelled
from ds4py.server.fair_queue import Ticket
from ds4py.server.metrics import Metrics

if TYPE_CHECKING:
    from ds4py.generation import ChatPiece, ChatStream

AHEAD: Final = 32
"""How many pieces may wait for the client before the thread pauses."""


class Job:
    """Runs a stream in a thread once its ticket is granted. `arrived` is the request's `time.monotonic()`, in seconds.

    The job keeps its ticket until the thread has ended, which is at most one chunk of a prompt or one cycle after
    `stop`. The thread waits for a client that does not take the pieces.
    """

    def __init__(
        self,
        stream: ChatStream,
        ticket: Ticket,
        executor: Executor,
        metrics: Metrics,
        arrived: float,
        forget: Callable[[Job], None],
    ) -> None:
        self.stream = stream
        self._ticket = ticket
        self._executor = executor
        self._metrics = metrics
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(AHEAD)
        self._arrived: asyncio.Queue[ChatPiece | BaseException | None] = asyncio.Queue()
        self._stopped = False
        self._done: asyncio.Future[None] | None = None
        self._since = arrived

    async def pieces(self) -> AsyncIterator[ChatPiece]:
        """Yields the pieces as they come; may be called once. Raises as the stream, and Cancelled after `stop`."""
        await self._ticket.wait()
        if not self._stopped:
            self._done = self._loop.run_in_executor(self._executor, self._run)
            self._done.add_done_callback(lambda _: self._ended())
        first = True
        while not self._stopped and (piece := await self._arrived.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            if first and piece.tokens:
                first = False
                self._metrics.first_token.observe(time.monotonic() - self._since)
            self._room.release()
            yield piece
        if self._stopped:
            raise Cancelled("the answer was stopped")

    def stop(self) -> None:
        """Cancels the rest of the answer. Call it from the event loop; repeated calls have no effect."""
        if self._stopped:
            return
        self._stopped = True
        self.stream.cancel()
        self._room.release()
        self._arrived.put_nowait(None)
        if self._done is None:
            self._ended()

    async def ended(self) -> None:
        """Waits until the thread has ended."""
        if self._done is not None:
            await asyncio.wait([self._done])

    def _run(self) -> None:
        """Computes the answer; runs in the thread."""
        last: BaseException | None = None
        try:
            with closing(self.stream):
                for piece in self.stream:
                    self._room.acquire()
                    if self._stopped:
                        break
                    self._hand_over(piece)
        except Exception as error:
            last = error
        self._metrics.count(self.stream)
        self._hand_over(last)

    def _hand_over(self, piece: ChatPiece | BaseException | None) -> None:
        self._loop.call_soon_threadsafe(self._arrived.put_nowait, piece)

    def _ended(self) -> None:
        self._ticket.leave()
        self._forget(self)
