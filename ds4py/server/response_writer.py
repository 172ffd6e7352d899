"""The interface by which an API writes an answer, as events of a stream or as one object, and the HTTP responses."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, NamedTuple

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ds4py.json_types import Json
from ds4py.server.errors import ApiError, api_error, log
from ds4py.server.job import Job

if TYPE_CHECKING:
    from ds4py.generation import ChatPiece, ChatStream

PING_SECONDS: Final = 15


def dumped(value: object) -> bytes:
    """Returns the value as JSON in UTF-8. A lone surrogate, which a request may hold, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class JsonResponse(JSONResponse):
    """A JSON response whose texts may hold lone surrogates."""

    def render(self, content: object) -> bytes:
        """Returns the body as bytes."""
        return dumped(content)


class StreamEvent(NamedTuple):
    """One server-sent event: its data (an object or a plain word) and its name, if the API names its events."""

    data: Json | str
    name: str | None = None

    def encode(self) -> ServerSentEvent:
        """Returns the event in the form that sse-starlette sends."""
        data = self.data if isinstance(self.data, str) else dumped(self.data).decode()
        return ServerSentEvent(data, event=self.name, sep="\n")


class ResponseWriter(ABC):
    """Writes one answer. `body` is what the events add up to, so that both say the same."""

    ping: StreamEvent | None = None
    """The event that keeps an idle connection open; None sends a comment instead."""

    @abstractmethod
    def begin(self) -> list[StreamEvent]:
        """Returns the events that precede the computation."""

    @abstractmethod
    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """Returns the events that a piece of the answer adds."""

    @abstractmethod
    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """Returns the events that end a complete answer."""

    @abstractmethod
    def failed(self, error: ApiError) -> list[StreamEvent]:
        """Returns the events that end an answer that failed with `error`."""

    @abstractmethod
    def body(self) -> Json:
        """Returns the whole answer as one object; valid after `end`."""


async def stream_events(job: Job, writer: ResponseWriter) -> AsyncIterator[ServerSentEvent]:
    """Yields the events of an answer as they are ready, and one with the error where it fails."""
    try:
        for event in writer.begin():
            yield event.encode()
        async for piece in job.pieces():
            for event in writer.piece(piece, job.stream):
                yield event.encode()
        for event in writer.end(job.stream):
            yield event.encode()
    except Exception as error:
        for event in writer.failed(api_error(error)):
            yield event.encode()


async def complete_body(job: Job, writer: ResponseWriter) -> Json:
    """Computes the answer and returns it as one object. Raises what the stream raises."""
    writer.begin()
    async for piece in job.pieces():
        writer.piece(piece, job.stream)
    writer.end(job.stream)
    return writer.body()


class EventStreamResponse(EventSourceResponse):
    """The response that sends a stream of events. It stops its job however the stream ends."""

    def __init__(self, job: Job, writer: ResponseWriter, stalled_seconds: float) -> None:
        ping = writer.ping
        super().__init__(
            stream_events(job, writer),
            ping=PING_SECONDS,
            ping_message_factory=ping.encode if ping else None,
            sep="\n",
            send_timeout=stalled_seconds,
        )
        self._job = job

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the stream; gives up when the client takes nothing for `stalled_seconds`."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.warning("a client took nothing of its answer for %.0f s: the answer is stopped", self.send_timeout or 0)
        finally:
            self._job.stop()


def new_id(prefix: str) -> str:
    """Returns a random identifier that begins with `prefix`."""
    return prefix + secrets.token_hex(12)
