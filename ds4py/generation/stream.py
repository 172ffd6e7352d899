"""The answer to one request as a stream: what `Engine.chat` and `Engine.complete` return."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from ds4py.chat import Message
from ds4py.errors import RequestError
from ds4py.generation.answer import ChatPiece, Reply, StreamedAnswer, Usage
from ds4py.generation.cancelling import Cancel
from ds4py.generation.in_process import StaysInProcess
from ds4py.generation.options import GenerationOptions
from ds4py.generation.session import AnsweringSession
from ds4py.generation.stats import Stats
from ds4py.prefix_cache import LeasedSession
from ds4py.prefix_cache.protocols import Ids

Lend = Callable[[Cancel], LeasedSession[AnsweringSession]]
"""Lends the session that a request runs in. Waits until one is free; raises Cancelled if the request is cancelled."""


def answer_pieces(
    answer: StreamedAnswer, lend: Lend, cancel: Cancel, options: GenerationOptions, breakpoints: Sequence[int]
) -> Generator[ChatPiece]:
    """Runs a request in the session that `lend` gives; the session keeps checkpoints at `breakpoints` of the prompt."""
    cancel.check()
    with lend(cancel) as lease, cancel.reaching(lease.session):
        answer.usage = replace(answer.usage, cached_tokens=lease.cached_tokens)
        generated = lease.session.generate(
            answer.ids[lease.prefix_length :],
            progress=lambda done, total: cancel.check(),
            checkpoints=breakpoints,
            **options,
        )
        answer.stats = lease.session.stats
        cancel.check()
        for piece in generated:
            yield answer.add(piece)
            cancel.check()


class ChatStream(StaysInProcess):
    """An answer while it is generated: an iterator and an async iterator of `ChatPiece`.

    Nothing runs before the first piece is requested, not even the prompt. One thread at a time may read the stream; any
    thread may cancel it. Its session is given back at the end, on an error, and when the stream is closed or deleted.

    >>> with engine.chat([{"role": "user", "content": "Hi"}]) as stream:
    ...     for piece in stream: ...
    >>> async with engine.chat([{"role": "user", "content": "Hi"}]) as stream:
    ...     async for piece in stream: ...

    In async code, each step runs in a thread that belongs to the stream, when it is requested. Cancelling the reading
    task cancels the stream.
    """

    def __init__(
        self,
        ids: Ids,
        lend: Lend,
        reply: Reply,
        options: GenerationOptions,
        breakpoints: Sequence[int] = (),
    ) -> None:
        self._answer = StreamedAnswer(ids, reply)
        self._cancel = Cancel()
        self._reading = threading.Lock()
        # The generator holds the answer, not this stream. A stream that is deleted thus ends it and frees the session.
        self._pieces = answer_pieces(self._answer, lend, self._cancel, options, breakpoints)
        self._worker: ThreadPoolExecutor | None = None

    @property
    def usage(self) -> Usage:
        """Counts of tokens so far."""
        return self._answer.usage

    @property
    def finish_reason(self) -> str | None:
        """The finish reason of the last piece ("stop", "length" or "tool_calls"); None until then."""
        return self._answer.finish_reason

    @property
    def stop_string(self) -> str | None:
        """The stop string that ended the answer; None where none did."""
        return self._answer.stop_string

    @property
    def message(self) -> Message | None:
        """The whole answer; None until the end."""
        return self._answer.message

    @property
    def stats(self) -> Stats:
        """Counts and times of the generation, with the statistics of speculation."""
        return self._answer.stats

    def cancel(self) -> None:
        """Stops the answer, from any thread; its reader gets Cancelled within one prompt chunk or one step."""
        self._cancel.ask()

    def close(self) -> None:
        """Ends the stream and gives the session back; a step that runs in another thread is cancelled first."""
        self._cancel.ask()
        with self._reading:
            self._pieces.close()
        worker, self._worker = self._worker, None
        if worker:
            worker.shutdown(wait=False)

    def __iter__(self) -> ChatStream:
        return self

    def __next__(self) -> ChatPiece:
        if not self._reading.acquire(blocking=False):
            raise RequestError("this stream is being read already: read it in one place at a time")
        try:
            return next(self._pieces)
        finally:
            self._reading.release()

    def __enter__(self) -> ChatStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> ChatStream:
        return self

    async def __anext__(self) -> ChatPiece:
        if (piece := await self._in_worker(lambda: next(self, None))) is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Does what `close` does, without blocking the event loop."""
        self._cancel.ask()
        await self._in_worker(self.close)

    async def __aenter__(self) -> ChatStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _in_worker(self, call: Callable[[], ChatPiece | None]) -> ChatPiece | None:
        """Runs `call` in this stream's own thread; in a shared thread pool, waiting streams could block others."""
        import asyncio  # slow to import, and async callers have imported it

        worker = self._worker = self._worker or ThreadPoolExecutor(1, "ds4py-stream")
        future = worker.submit(call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._cancel.ask()
            with suppress(RuntimeError):  # `call` has shut the worker down: the stream is closed
                worker.submit(self._pieces.close)
            raise
