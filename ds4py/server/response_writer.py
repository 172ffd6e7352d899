"""How an API writes an answer: events of a stream, and the same as one object."""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ds4py.server.errors import ApiError, api_error, log
from ds4py.server.job import Job

if TYPE_CHECKING:
    from ds4py.generation.stream import ChatPiece, ChatStream

Json = dict[str, Any]

PING_SECONDS: Final = 15


def dumped(value: object) -> bytes:
    """JSON. Half of a surrogate pair, which a request's JSON may hold and an answer repeat, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class JsonResponse(JSONResponse):
    """A response that is JSON, whatever texts are in it."""

    def render(self, content: object) -> bytes:
        """The body."""
        return dumped(content)


class StreamEvent(NamedTuple):
    """One event: its data, an object or a plain word, and its name where the API has names."""

    data: Json | str
    name: str | None = None

    def encode(self) -> ServerSentEvent:
        """As it goes over the line."""
        data = self.data if isinstance(self.data, str) else dumped(self.data).decode()
        return ServerSentEvent(data, event=self.name, sep="\n")


class ResponseWriter(ABC):
    """Writes one answer. `body` is what the events add up to, so that both say the same."""

    ping: StreamEvent | None = None
    """What shows that the connection lives; None is a comment."""

    @abstractmethod
    def begin(self) -> list[StreamEvent]:
        """What is known before anything is computed."""

    @abstractmethod
    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[StreamEvent]:
        """What a piece adds."""

    @abstractmethod
    def end(self, stream: ChatStream) -> list[StreamEvent]:
        """What ends an answer that is whole."""

    @abstractmethod
    def failed(self, error: ApiError) -> list[StreamEvent]:
        """What ends one that is not."""

    @abstractmethod
    def body(self) -> Json:
        """The answer as one object, after its end."""


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
    """The answer as one object. Raises what the stream raises."""
    writer.begin()
    async for piece in job.pieces():
        writer.piece(piece, job.stream)
    writer.end(job.stream)
    return writer.body()


class EventStreamResponse(EventSourceResponse):
    """The response of a stream; however it ends, its job is stopped."""

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
        """Sends it."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.warning("a client took nothing of its answer for %.0f s: the answer is stopped", self.send_timeout or 0)
        finally:
            self._job.stop()


def new_id(prefix: str) -> str:
    """A name that nothing else has."""
    return prefix + secrets.token_hex(12)
