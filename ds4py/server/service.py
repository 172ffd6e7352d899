"""The service behind the endpoints: one engine, which is loaded once and shared by all requests."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import Response

from ds4py.errors import Cancelled
from ds4py.server.errors import ApiError
from ds4py.server.fair_queue import FairQueue
from ds4py.server.generation_request import GenerationRequest
from ds4py.server.job import Job
from ds4py.server.metrics import Metrics
from ds4py.server.middleware import CLIENT_LEFT
from ds4py.server.options import ServerOptions
from ds4py.server.response_writer import EventStreamResponse, JsonResponse, ResponseWriter, complete_body

if TYPE_CHECKING:
    from ds4py import Engine

log = logging.getLogger(__name__)

Progress = Callable[[float], None]
Load = Callable[[Progress], "Engine"]
"""A function that loads the engine and reports its progress as a fraction from 0 to 1."""


class Service:
    """State that the endpoints share. Only the event loop uses it, except for loading and for the answers' threads."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.metrics = Metrics()
        self.queue = FairQueue(options.parallel, options.queue)
        self.metrics.watch(lambda: self.queue.waiting, lambda: self.queue.running)
        self.progress = 0.0
        self.started_at = datetime.now(timezone.utc)
        self._engine: Engine | None = None
        self._executor = ThreadPoolExecutor(options.parallel, thread_name_prefix="answer")
        self._jobs: set[Job] = set()

    @property
    def state(self) -> str:
        """The state of the server: `loading`, `ok` or `stopping`."""
        return "stopping" if self.queue.closed else "ok" if self._engine is not None else "loading"

    @property
    def engine(self) -> Engine:
        """The loaded engine. Raises ApiError (503) while it is loading."""
        if self._engine is None:
            raise ApiError(503, f"the model is loading ({self.progress:.0%})", code="loading", retry_after=5)
        return self._engine

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which requests may ask for the model."""
        return self.options.aliases or (self.engine.name,)

    async def load(self, load: Load) -> None:
        """Loads the engine in a thread and warms it up. Raises what `load` raises."""

        def loaded() -> Engine:
            engine = load(self._loaded)
            warm_up(engine)
            return engine

        self._engine = await asyncio.get_running_loop().run_in_executor(self._executor, loaded)

    def _loaded(self, fraction: float) -> None:
        if self.queue.closed:  # Ctrl-C while loading
            raise Cancelled("the server is stopping")
        self.progress = fraction

    async def answer(
        self, request: Request, generation: GenerationRequest, writer: ResponseWriter, *, stream: bool
    ) -> Response:
        """Answers a request, and stops its job if the client disconnects. Raises ApiError if the queue is full."""
        arrived = time.monotonic()
        engine = self.engine
        ticket = self.queue.enter(client_of(request))
        try:
            # Lengths are checked here and not in the turn: a prompt that is refused need not wait to hear it.
            chat = await asyncio.to_thread(generation.start, engine, self.options.drafting)
            if self.queue.closed:
                raise Cancelled("the server is stopping")
        except BaseException:
            ticket.leave()
            raise
        job = Job(chat, ticket, self._executor, self.metrics, arrived, self._jobs.discard)
        self._jobs.add(job)
        if stream:
            return EventStreamResponse(job, writer, self.options.stalled_seconds)
        return await attended(request, job, writer)

    async def stop(self) -> None:
        """Stops all jobs and waits until their threads have ended."""
        self.queue.closed = True
        jobs = list(self._jobs)
        for job in jobs:
            job.stop()
        for job in jobs:
            await job.ended()

    def close(self) -> None:
        """Waits for the threads and closes the engine."""
        self._executor.shutdown()
        if self._engine is not None:
            self._engine.close()
            self._engine = None


def warm_up(engine: Engine) -> None:
    """Generates a few tokens, so that what is built or read at first use exists before the first request."""
    for _ in engine.complete([engine.tokenizer.bos_id or 0], max_tokens=4):
        pass


async def attended(request: Request, job: Job, writer: ResponseWriter) -> Response:
    """Returns the whole answer, or an empty response with status 499 if the client disconnects first."""
    task = asyncio.create_task(complete_body(job, writer))
    gone = asyncio.create_task(left(request))
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        return JsonResponse(task.result()) if task.done() else Response(status_code=CLIENT_LEFT)
    finally:
        job.stop()
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def left(request: Request) -> None:
    """Waits until the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def client_of(request: Request) -> str:
    """Returns the address that stands for the client in the queue."""
    return request.client.host if request.client else ""
