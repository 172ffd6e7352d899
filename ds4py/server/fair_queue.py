"""A bounded queue that is fair between clients."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from ds4py.server.errors import ApiError

RETRY_AFTER = 5
"""Seconds after which a refused client may try again."""


class FairQueue:
    """Lets `parallel` requests run and `waiting` more wait, in order of arrival for each client.

    Clients take turns, so many requests of one client do not delay those of others. Use it from one event loop.
    """

    def __init__(self, parallel: int, waiting: int) -> None:
        self._free = parallel
        self._room = waiting
        self._queues: OrderedDict[str, deque[Ticket]] = OrderedDict()  # the client whose turn comes next is first
        self.running = 0
        self.closed = False

    @property
    def waiting(self) -> int:
        """The number of requests in the queue."""
        return sum(map(len, self._queues.values()))

    def enter(self, client: str) -> Ticket:
        """Returns a ticket, granted at once if there is room. Raises ApiError if the queue is full or closed."""
        if self.closed:
            raise ApiError(503, "the server is stopping", retry_after=RETRY_AFTER)
        ticket = Ticket(self, client)
        if not self._free and self.waiting >= self._room:
            raise ApiError(
                429,
                f"{self.running} requests are running and {self.waiting} are waiting, which is all that may: try later",
                code="queue_full",
                retry_after=RETRY_AFTER,
            )
        self._queues.setdefault(client, deque()).append(ticket)
        self._admit()
        return ticket

    def _admit(self) -> None:
        while self._free and self._queues:
            client, queue = next(iter(self._queues.items()))
            ticket = queue.popleft()
            if queue:
                self._queues.move_to_end(client)
            else:
                del self._queues[client]
            self._free -= 1
            self.running += 1
            ticket.grant()

    def leave(self, ticket: Ticket) -> None:
        """Removes a ticket, and grants the next one if this one was granted."""
        if ticket.granted:
            self.running -= 1
            self._free += 1
            self._admit()
            return
        queue = self._queues[ticket.client]
        queue.remove(ticket)
        if not queue:
            del self._queues[ticket.client]


class Ticket:
    """One request's place in the queue.

    Attributes:
        client: the address of the client.
        granted: whether the request may run, or has run.
    """

    def __init__(self, queue: FairQueue, client: str) -> None:
        self.client = client
        self.granted = False
        self._queue = queue
        self._left = False
        self._called = asyncio.Event()

    def grant(self) -> None:
        """Lets the request run."""
        self.granted = True
        self._called.set()

    async def wait(self) -> None:
        """Waits until the ticket is granted or given back."""
        await self._called.wait()

    def leave(self) -> None:
        """Gives the ticket back; repeated calls have no effect."""
        if not self._left:
            self._left = True
            self._called.set()
            self._queue.leave(self)
