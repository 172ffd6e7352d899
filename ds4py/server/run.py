"""The server process: it listens, loads the engine, answers and stops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import uvicorn

from ds4py.server.app import build
from ds4py.server.options import KIB, ServerOptions
from ds4py.server.service import Load, Service

log = logging.getLogger(__name__)

SEND_BUFFER: Final = 64 * KIB
"""Bytes of a connection's send buffer; small, so that a client that does not read is noticed early."""

LINGER_SECONDS: Final = 5
"""Seconds that connections may take to end after their answers are stopped."""


def serve(options: ServerOptions, load: Load, tell: Callable[[str], None] = log.info) -> None:
    """Listens, loads the engine, and answers until SIGINT or SIGTERM.

    Requests are refused with 503 until the engine is loaded. `tell` gets a line when it listens and when it is ready.

    Raises OSError where the address cannot be listened on, before anything is loaded, and what `load` raises.
    """
    with listen(options) as listener:
        url = url_of(listener)
        tell(f"listening on {url}")
        Server(Service(options), load, lambda: tell(f"ready: {url} (Ctrl-C ends it)"), listener).run_until_stopped()


class Server(uvicorn.Server):
    """A uvicorn server that loads an engine after it starts and closes it before it ends."""

    def __init__(self, service: Service, load: Load, ready: Callable[[], None], listener: socket.socket) -> None:
        _, app = build(service)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                http="h11",  # whichever parsers are installed: `in_request` knows this one
                ws="none",
                server_header=False,
                timeout_graceful_shutdown=LINGER_SECONDS,
            )
        )
        self.service = service
        self._load = load
        self._ready = ready
        self._listener = listener
        self._failure: BaseException | None = None

    def run_until_stopped(self) -> None:
        """Serves in this thread. Raises what the loading raised."""
        self.run(sockets=[self._listener])
        if self._failure is not None:
            raise self._failure

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen and to load the engine."""
        await super().startup(sockets)
        self._loading = asyncio.create_task(self._load_engine())
        self._closing = asyncio.create_task(self._close_silent())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stops the answers, then the connections, then the engine."""
        self._closing.cancel()
        await self.service.stop()
        await super().shutdown(sockets)
        await self._loading
        self.service.close()

    async def _load_engine(self) -> None:
        try:
            await self.service.load(self._load)
        except BaseException as error:
            if not self.should_exit:  # else it is what stopped the loading
                self._failure = error
                self.should_exit = True
        else:
            self._ready()

    async def _close_silent(self) -> None:
        """Closes connections that have been without a whole head of a request for two looks; uvicorn waits for ever."""
        before: dict[Any, Any] = {}
        while True:
            await asyncio.sleep(self.service.options.sending_seconds)
            connections: list[Any] = list(self.server_state.connections)
            silent = {each: each.cycle for each in connections if not in_request(each)}
            for each, latest in silent.items():
                if before.get(each, self) is latest:
                    each.transport.close()
            before = silent

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end the serving and nothing else; uvicorn would raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Python gives signals to the main thread alone
            return
        handlers = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in handlers.items():
                signal.signal(each, handler)


def in_request(connection: Any) -> bool:
    """Whether one of uvicorn's h11 connections has a request that is not answered yet."""
    return connection.cycle is not None and not connection.cycle.response_complete


def listen(options: ServerOptions) -> socket.socket:
    """Returns a listening socket. Raises OSError, with advice if the address is taken."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        listener.bind((options.host, options.port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise OSError(f"cannot listen on {options.host}:{options.port}: {reason(error)}") from error
    return listener


def reason(error: OSError) -> str:
    """Returns why listening failed, with advice if the port is taken."""
    if error.errno == errno.EADDRINUSE:
        return "the port is taken, by another server perhaps; give another one with --port, or 0 for any"
    return error.strerror or str(error)


def url_of(listener: socket.socket) -> str:
    """Returns the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
