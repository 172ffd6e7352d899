"""One answer as a stream: what `Engine.chat` and `Engine.complete` give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from ds4py.chat import Message
from ds4py.chat.reply import Content, Event, message_of
from ds4py.errors import RequestError
from ds4py.generation.cancelling import Cancel
from ds4py.generation.in_process import StaysInProcess
from ds4py.generation.stats import Stats
from ds4py.prefix_cache import CallerSession, LeasedSession
from ds4py.prefix_cache.prefix import Ids
from ds4py.sampling.logprobs import TokenLogprobs

if TYPE_CHECKING:
    from ds4py.generation.options import GenerationOptions
    from ds4py.generation.piece import Piece


class Reply(Protocol):
    """Makes events of the text of an answer, however it is cut."""

    def push(self, text: str) -> list[Event]:
        """The events that this text completes."""

    def finish(self) -> list[Event]:
        """The rest, at the end of the answer."""


class PlainReply:
    """Everything is content."""

    def push(self, text: str) -> list[Event]:
        """The text."""
        return [Content(text)] if text else []

    def finish(self) -> list[Event]:
        """Nothing is held back."""
        return []


@dataclass(frozen=True)
class ChatPiece:
    """What one step adds to an answer.

    Attributes:
        events: text, reasoning and tool calls that are complete now; may be none.
        tokens: the ids behind this step.
        logprobs: one for each token; None where they were not asked for.
        finish_reason: None until the last piece; then "stop", "length" or "tool_calls".
    """

    events: tuple[Event, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[TokenLogprobs, ...] | None = None
    finish_reason: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of a request: of its prompt, how many of these were not evaluated again, and of the answer."""

    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0


class StreamedAnswer:
    """What has become of a request so far."""

    def __init__(self, ids: Ids, reply: Reply) -> None:
        self.ids = ids
        self.usage = Usage(prompt_tokens=len(ids))
        self.finish_reason: str | None = None
        self.stop_string: str | None = None
        self.message: Message | None = None
        self.stats = Stats()
        self._reply = reply
        self._events: list[Event] = []

    def add(self, piece: Piece) -> ChatPiece:
        """A piece of text as events; the last one ends the answer."""
        events = self._reply.push(piece.text)
        if piece.finish_reason:
            events += self._reply.finish()
        self._events += events
        self.usage = replace(self.usage, completion_tokens=self.usage.completion_tokens + len(piece.tokens))
        if piece.finish_reason:
            self.stop_string = piece.stop_string
            self.message = message_of(self._events)
            called = piece.finish_reason == "stop" and self.message.tool_calls
            self.finish_reason = "tool_calls" if called else piece.finish_reason
        return ChatPiece(tuple(events), piece.tokens, piece.logprobs, self.finish_reason)


def pieces(
    answer: StreamedAnswer,
    lend: Callable[[Cancel], LeasedSession | CallerSession],
    cancel: Cancel,
    options: GenerationOptions,
    breakpoints: Sequence[int],
) -> Generator[ChatPiece]:
    """Runs a request in a session that it borrows; it can go back to the `breakpoints` in its prompt later."""
    cancel.check()
    with lend(cancel) as lease, cancel.reaching(lease.session):
        answer.usage = replace(answer.usage, cached_tokens=lease.cached_tokens)
        generated = lease.session.generate(
            answer.ids[lease.held :], progress=lambda done, total: cancel.check(), checkpoints=breakpoints, **options
        )
        answer.stats = lease.session.stats
        cancel.check()
        for piece in generated:
            yield answer.add(piece)
            cancel.check()


class ChatStream(StaysInProcess):
    """An answer as it is made: an iterator, and an async iterator, of `ChatPiece`.

    Nothing runs before the first piece is asked for, the prompt included. One thread at a time reads it; any may
    cancel it. The session it runs in is given back at the end, on an error, and when the stream is closed or dropped.

    >>> with engine.chat([{"role": "user", "content": "Hi"}]) as stream:
    ...     for piece in stream: ...
    >>> async with engine.chat([{"role": "user", "content": "Hi"}]) as stream:
    ...     async for piece in stream: ...

    Read asynchronously, steps run in a thread of the stream's own, each when it is asked for; a task that is cancelled
    cancels the stream.

    """

    def __init__(
        self,
        ids: Ids,
        lend: Callable[[Cancel], LeasedSession | CallerSession],
        reply: Reply,
        options: GenerationOptions,
        breakpoints: Sequence[int] = (),
    ) -> None:
        self._answer = StreamedAnswer(ids, reply)
        self._cancel = Cancel()
        self._reading = threading.Lock()
        # It knows the answer and not this stream: so it ends, and gives its session back, where the stream is dropped.
        self._pieces = pieces(self._answer, lend, self._cancel, options, breakpoints)
        self._worker: ThreadPoolExecutor | None = None

    @property
    def usage(self) -> Usage:
        """Counts so far."""
        return self._answer.usage

    @property
    def finish_reason(self) -> str | None:
        """As in the last piece; None until then."""
        return self._answer.finish_reason

    @property
    def stop_string(self) -> str | None:
        """The one that ended the answer; None where none did."""
        return self._answer.stop_string

    @property
    def message(self) -> Message | None:
        """The whole answer; None until the end."""
        return self._answer.message

    @property
    def stats(self) -> Stats:
        """Of the generation, speculation included."""
        return self._answer.stats

    def cancel(self) -> None:
        """Stops it from any thread: whoever reads it gets Cancelled, within a chunk of the prompt or a step."""
        self._cancel.ask()

    def close(self) -> None:
        """Ends it and gives the session back; a step that is running in another thread is cancelled first."""
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
        """`close`, without holding up the event loop."""
        self._cancel.ask()
        await self._in_worker(self.close)

    async def __aenter__(self) -> ChatStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _in_worker(self, call: Callable[[], ChatPiece | None]) -> ChatPiece | None:
        """Runs in a thread of this stream alone: in a shared one, streams that wait could keep others from ending."""
        import asyncio  # takes a while, and whoever reads asynchronously has it

        worker = self._worker = self._worker or ThreadPoolExecutor(1, "ds4py-stream")
        future = worker.submit(call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._cancel.ask()
            with suppress(RuntimeError):  # of a worker that `call` has shut down: then all is closed
                worker.submit(self._pieces.close)
            raise
