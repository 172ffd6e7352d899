"""The queue: bounded, and fair between clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ds4py.server.errors import ApiError
from ds4py.server.fair_queue import FairQueue

pytestmark = pytest.mark.fast


def in_loop(test: Callable[[], object]) -> None:
    """Runs a test where there is an event loop."""

    async def main() -> None:
        test()

    asyncio.run(main())


def test_clients_take_turns() -> None:
    def order() -> None:
        turns = FairQueue(1, 100)
        first = turns.enter("greedy")
        tickets = [turns.enter("greedy") for _ in range(5)] + [turns.enter("b"), turns.enter("c"), turns.enter("b")]
        served = []
        running = first
        while turns.running:
            running.leave()
            running = next((each for each in tickets if each.granted and each not in served), first)
            served.append(running)
            if running is first:
                break
        assert [each.client for each in served[:-1]] == [
            "greedy",
            "b",
            "c",
            "greedy",
            "b",
            "greedy",
            "greedy",
            "greedy",
        ]
        assert [each for each in served[:-1] if each.client == "greedy"] == tickets[:5]

    in_loop(order)


def test_a_full_queue_refuses() -> None:
    def full() -> None:
        turns = FairQueue(2, 1)
        tickets = [turns.enter("a") for _ in range(3)]
        assert (turns.running, turns.waiting) == (2, 1)
        with pytest.raises(ApiError) as caught:
            turns.enter("b")
        assert caught.value.status_code == 429
        assert int((caught.value.headers or {})["Retry-After"]) > 0
        tickets[0].leave()
        assert tickets[2].granted
        turns.enter("b")

    in_loop(full)


def test_whoever_leaves_the_queue_is_not_called() -> None:
    def leave() -> None:
        turns = FairQueue(1, 5)
        first, second, third = turns.enter("a"), turns.enter("a"), turns.enter("b")
        second.leave()
        second.leave()
        first.leave()
        assert third.granted and not second.granted
        third.leave()
        assert (turns.running, turns.waiting) == (0, 0)

    in_loop(leave)


def test_a_queue_of_none_still_lets_in_who_can_run() -> None:
    def none() -> None:
        turns = FairQueue(1, 0)
        turns.enter("a")
        with pytest.raises(ApiError):
            turns.enter("a")

    in_loop(none)
