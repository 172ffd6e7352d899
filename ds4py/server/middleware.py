"""Middleware that every request passes: it counts, and checks the API key and the size of the body."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from typing import Final
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ds4py.server.errors import ApiError, body_for
from ds4py.server.metrics import Metrics
from ds4py.server.options import ServerOptions

log = logging.getLogger(__name__)

OPEN_PATHS: Final = frozenset({"/health"})
"""Paths that need no API key."""

CLIENT_LEFT: Final = 499
"""The status that is counted for a client that disconnected early; nginx uses the same number."""


class RequestMiddleware:
    """ASGI middleware around the application. It answers requests that it refuses, and counts all."""

    def __init__(self, app: ASGIApp, options: ServerOptions, metrics: Metrics) -> None:
        self._app = app
        self._key = None if options.api_key is None else options.api_key.encode()
        self._limit = options.max_request_bytes
        self._sending_seconds = options.sending_seconds
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # the server that sends the answer leaves its body out
            scope = {**scope, "method": "GET"}
        status, finished, started = CLIENT_LEFT, False, time.monotonic()

        async def counted(message: Message) -> None:
            nonlocal status, finished
            if message["type"] == "http.response.start":
                status = message["status"]
            finished = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._guarded(scope, receive, counted)
        finally:
            status = status if finished else CLIENT_LEFT
            self._metrics.requests.labels(endpoint(scope), status).inc()
            path = quote(scope["path"])  # as it was asked: a line end would begin a line of the log
            log.info("%s %s %d, %.3f s", scope["method"], path, status, time.monotonic() - started)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        error = self._refusal(scope, headers)
        if error is not None:
            body = body_for(scope["path"], error)
            await JSONResponse(body, error.status_code, error.headers)(scope, receive, send)
            return
        await self._app(scope, self._limited(receive), send)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> ApiError | None:
        if scope["path"] not in OPEN_PATHS and not self._has_key(headers):
            return ApiError(401, "the API key is missing or wrong", code="invalid_api_key")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > self._limit:
            return self._too_large(f"has {int(length)}")
        return None

    def _has_key(self, headers: dict[bytes, bytes]) -> bool:
        if self._key is None:
            return True
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        given = bearer.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"")
        return hmac.compare_digest(given, self._key)

    def _limited(self, receive: Receive) -> Receive:
        """Wraps `receive` so that a body that is too large or too slow raises ApiError (413 or 408)."""
        total, whole, end = 0, False, time.monotonic() + self._sending_seconds

        async def limited() -> Message:
            nonlocal total, whole
            if whole:  # what comes now is that the client leaves
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0.0, end - time.monotonic()))
            except asyncio.TimeoutError:
                raise self._too_slow() from None
            whole = not message.get("more_body", False)
            total += len(message.get("body", b""))
            if total > self._limit:
                raise self._too_large("has more")
            return message

        return limited

    def _too_large(self, found: str) -> ApiError:
        return ApiError(413, f"the body {found} bytes, allowed are {self._limit}", code="request_too_large")

    def _too_slow(self) -> ApiError:
        message = f"the body has not arrived within {self._sending_seconds:g} s"
        return ApiError(408, message, code="request_timeout", headers={"Connection": "close"})


def endpoint(scope: Scope) -> str:
    """Returns the path of the route that answered, or `other`, so that made-up paths add no labels to the metrics."""
    route = scope.get("route")
    return route.path if isinstance(route, Route) else "other"
