"""How an API writes an answer: events of a stream, and the same as one object."""

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
from ds4py.server.work import Work

if TYPE_CHECKING:
    from ds4py.generation import ChatPiece, ChatStream

PING_SECONDS: Final = 15


def dumped(value: object) -> bytes:
    """JSON. Half of a surrogate pair, which a request's JSON may hold and an answer repeat, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class JsonResponse(JSONResponse):
    """A response that is JSON, whatever texts are in it."""

    def render(self, content: object) -> bytes:
        """The body."""
        return dumped(content)


class Event(NamedTuple):
    """One event: its data, an object or a plain word, and its name where the API has names."""

    data: Json | str
    name: str | None = None

    def encode(self) -> ServerSentEvent:
        """As it goes over the line."""
        data = self.data if isinstance(self.data, str) else dumped(self.data).decode()
        return ServerSentEvent(data, event=self.name, sep="\n")


class Answer(ABC):
    """Writes one answer. `body` is what the events add up to, so that both say the same."""

    ping: Event | None = None
    """What shows that the connection lives; None is a comment."""

    @abstractmethod
    def begin(self) -> list[Event]:
        """What is known before anything is computed."""

    @abstractmethod
    def piece(self, piece: ChatPiece, stream: ChatStream) -> list[Event]:
        """What a piece adds."""

    @abstractmethod
    def end(self, stream: ChatStream) -> list[Event]:
        """What ends an answer that is whole."""

    @abstractmethod
    def failed(self, error: ApiError) -> list[Event]:
        """What ends one that is not."""

    @abstractmethod
    def body(self) -> Json:
        """The answer as one object, after its end."""


async def events(work: Work, answer: Answer) -> AsyncIterator[ServerSentEvent]:
    """The stream of an answer."""
    try:
        for event in answer.begin():
            yield event.encode()
        async for piece in work.pieces():
            for event in answer.piece(piece, work.stream):
                yield event.encode()
        for event in answer.end(work.stream):
            yield event.encode()
    except Exception as error:
        for event in answer.failed(api_error(error)):
            yield event.encode()


async def whole(work: Work, answer: Answer) -> Json:
    """The answer as one object. Raises what the stream raises."""
    answer.begin()
    async for piece in work.pieces():
        answer.piece(piece, work.stream)
    answer.end(work.stream)
    return answer.body()


class Streamed(EventSourceResponse):
    """The response of a stream; however it ends, its work is stopped."""

    def __init__(self, work: Work, answer: Answer, stalled_seconds: float) -> None:
        ping = answer.ping
        super().__init__(
            events(work, answer),
            ping=PING_SECONDS,
            ping_message_factory=ping.encode if ping else None,
            sep="\n",
            send_timeout=stalled_seconds,
        )
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            log.warning("a client took nothing of its answer for %.0f s: the answer is stopped", self.send_timeout or 0)
        finally:
            self._work.stop()


def new_id(prefix: str) -> str:
    """A name that nothing else has."""
    return prefix + secrets.token_hex(12)
