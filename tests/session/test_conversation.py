"""Answers as streams: what they say, what they reuse, how they end, from one thread and from several."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from serving import until

import ds4py
from ds4py import ChatPiece, ChatStream, Engine, Sampling, grammar
from ds4py.chat import Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart, encode_chat

pytestmark = pytest.mark.fast

GREEDY = Sampling(temperature=0)
ASK = [{"role": "system", "content": "You are terse."}, {"role": "user", "content": "Write a JSON object."}]


def text_of(pieces: list[ChatPiece]) -> str:
    return "".join(event.text for piece in pieces for event in piece.events)


def ids_of(pieces: list[ChatPiece]) -> list[int]:
    return [token for piece in pieces for token in piece.tokens]


def solo(engine: Engine, ids: list[int], **options: object) -> list[int]:
    with engine.session() as session:
        return [t for piece in session.generate(ids, **options) for t in piece.tokens]  # type: ignore[arg-type]


def test_a_chat_is_what_a_session_generates(engine: Engine) -> None:
    ids = encode_chat(engine.tokenizer, ASK)
    stream = engine.chat(ASK, sampling=GREEDY, max_tokens=20)
    pieces = list(stream)
    assert ids_of(pieces) == solo(engine, ids, sampling=GREEDY, max_tokens=20)
    assert text_of(pieces) == engine.tokenizer.decode(ids_of(pieces))
    assert stream.finish_reason == pieces[-1].finish_reason == "length"
    assert stream.message is not None
    assert stream.message.content == text_of(pieces)
    assert stream.usage.prompt_tokens == len(ids)
    assert stream.usage.completion_tokens == len(ids_of(pieces)) == 20
    assert stream.stats.generated_tokens == 20


def test_a_second_turn_evaluates_what_is_new(engine: Engine) -> None:
    first = engine.chat(ASK, sampling=GREEDY, max_tokens=20)
    answer = text_of(list(first))
    more = [*ASK, {"role": "assistant", "content": answer}, {"role": "user", "content": "Again."}]
    ids = encode_chat(engine.tokenizer, more)
    second = engine.chat(more, sampling=GREEDY, max_tokens=12)
    assert ids_of(list(second)) == solo(engine, ids, sampling=GREEDY, max_tokens=12)
    assert second.usage.cached_tokens >= first.usage.prompt_tokens


def test_a_session_of_ones_own(engine: Engine) -> None:
    with engine.session() as session:
        list(engine.complete("def f(", session=session, max_tokens=8, sampling=GREEDY))
        held = [*session.history()]
        again = engine.complete([*held, 40, 41], session=session, max_tokens=4, sampling=GREEDY)
        got = ids_of(list(again))
        assert again.usage.cached_tokens == len(held)
        assert [*session.history()] == [*held, 40, 41, *got]
    assert got == solo(engine, [*map(int, held), 40, 41], max_tokens=4, sampling=GREEDY)


def test_wrong_requests_are_refused_before_they_run(engine: Engine) -> None:
    with pytest.raises(ds4py.RequestError, match="the list is empty"):
        engine.chat([])
    with pytest.raises(ds4py.RequestError, match="leaves no room"):
        engine.complete([5] * engine.pool.context)
    with pytest.raises(ds4py.RequestError, match="accept is 'coin'"):
        engine.chat(ASK, accept="coin")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unknown options temperature"):
        engine.chat(ASK, temperature=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling", {"temperature": 0}),
        ("sampling", {}),
        ("max_tokens", "8"),
        ("max_tokens", 8.0),
        ("max_tokens", True),
        ("logprobs", "2"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(engine: Engine, name: str, value: object) -> None:
    wrong: Any = {name: value}
    with engine.session() as session:
        for call in (engine.complete, session.generate):
            with pytest.raises(ds4py.RequestError, match=f"^{name} is {re.escape(repr(value))}, wanted"):
                call("x", **wrong)
        with pytest.raises(ds4py.RequestError, match=f"^{name} is "):
            engine.chat(ASK, **wrong)


def test_sessions_of_other_and_of_closed_engines_are_refused(engine: Engine) -> None:
    with Engine() as other:
        foreign = other.session()
        with pytest.raises(ds4py.RequestError, match="the session is of another engine"):
            engine.chat(ASK, session=foreign)
        closed = other.session()
        closed.close()
        with pytest.raises(ds4py.RequestError, match="this session is closed"):
            other.complete("x", session=closed)
    for session in (foreign, None):
        with pytest.raises(ds4py.RequestError, match="this engine is closed"):
            other.complete("x", session=session)
    foreign.close()


def test_cancelled_streams_give_their_session_back(engine: Engine) -> None:
    engine.pool = ds4py.prefix_cache.SessionPool(engine, sessions=1)
    stream = engine.chat(ASK, sampling=GREEDY)
    next(stream)
    stream.cancel()
    with pytest.raises(ds4py.Cancelled):
        next(stream)
    early = engine.chat(ASK)
    early.cancel()
    with pytest.raises(ds4py.Cancelled):
        next(early)
    with engine.chat(ASK) as left:
        next(left)
    dropped = engine.chat(ASK)
    next(dropped)
    del dropped
    assert len(ids_of(list(engine.chat(ASK, max_tokens=5)))) == 5


def test_a_prompt_is_cancelled(engine: Engine) -> None:
    stream = engine.complete([7] * 4000)
    timer = threading.Timer(0.1, stream.cancel)
    timer.start()
    with pytest.raises(ds4py.Cancelled):
        next(stream)
    assert stream.usage.completion_tokens == 0


def test_a_stream_that_waits_for_a_session_is_cancelled(engine: Engine) -> None:
    engine.pool = ds4py.prefix_cache.SessionPool(engine, sessions=1)
    with engine.chat(ASK) as first:
        next(first)
        second = engine.chat(ASK)
        threading.Timer(0.05, second.cancel).start()
        with pytest.raises(ds4py.Cancelled):
            next(second)


def test_read_asynchronously(engine: Engine) -> None:
    async def one(seed: int) -> list[int]:
        stream = engine.chat(ASK, sampling=Sampling(seed=seed), draft="off", max_tokens=15)
        return [token async for piece in stream for token in piece.tokens]

    async def many() -> list[list[int]]:
        return await asyncio.gather(*(one(seed) for seed in range(6)))

    engine.pool = ds4py.prefix_cache.SessionPool(engine, sessions=2)
    ids = encode_chat(engine.tokenizer, ASK)
    wanted = [solo(engine, ids, sampling=Sampling(seed=seed), draft="off", max_tokens=15) for seed in range(6)]
    assert asyncio.run(many()) == wanted


def test_a_cancelled_task_cancels_its_stream(engine: Engine) -> None:
    engine.pool = ds4py.prefix_cache.SessionPool(engine, sessions=1)

    async def read(stream: ChatStream) -> None:
        async for _ in stream:
            pass

    async def run() -> int:
        stream = engine.complete([7] * 4000)
        task = asyncio.create_task(read(stream))
        while not stream._reading.locked():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with engine.chat(ASK, max_tokens=3) as after:
            return sum([len(piece.tokens) async for piece in after])

    assert asyncio.run(run()) == 3


@pytest.mark.parametrize("first", ["close", "aclose"])
def test_closing_again_changes_nothing(engine: Engine, first: str) -> None:
    async def run() -> None:
        async with engine.chat(ASK, max_tokens=30) as stream:
            assert await anext(stream)
            if first == "close":
                stream.close()
            await stream.aclose()
            assert [piece async for piece in stream] == []
        assert stream.finish_reason is None

    asyncio.run(run())


def test_a_task_that_is_cancelled_while_it_closes(engine: Engine) -> None:
    engine.pool = ds4py.prefix_cache.SessionPool(engine, sessions=1)

    async def run() -> None:
        stream = engine.chat(ASK, max_tokens=30)
        await anext(stream)
        task = asyncio.create_task(stream.aclose())
        await asyncio.sleep(0)
        time.sleep(0.2)  # the close has come to its end, and the event loop does not know yet
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with engine.chat(ASK, max_tokens=3) as after:
            assert sum([len(piece.tokens) async for piece in after]) == 3

    asyncio.run(run())


def test_reading_in_two_places_is_refused(engine: Engine) -> None:
    stream = engine.complete([7] * 4000)
    reader = threading.Thread(target=lambda: [*suppressed(stream)])
    reader.start()
    until(stream._reading.locked)
    with pytest.raises(ds4py.RequestError, match="being read already"):
        next(stream)
    stream.cancel()
    reader.join(60)


def suppressed(stream: ChatStream) -> Iterator[ChatPiece]:
    with suppress(ds4py.Error):
        yield from stream


TOOLS = [{"type": "function", "function": {"name": "roll", "parameters": {"properties": {"sides": {"enum": [6, 20]}}}}}]


def test_tool_calls_are_events_and_the_reason_to_finish(engine: Engine) -> None:
    constraint = grammar.tool_calls(engine.tokenizer, TOOLS, parallel=False)
    with engine.chat(ASK, tools=TOOLS, sampling=Sampling(seed=1), constraint=constraint) as stream:
        events = [event for piece in stream for event in piece.events]
    assert [type(event) for event in events] == [ToolCallStart, ToolCallArguments, ToolCallEnd]
    assert stream.message is not None
    (call,) = stream.message.tool_calls
    assert (call.name, stream.message.content) == ("roll", "")
    assert json.loads(call.arguments) in ({}, {"sides": 6}, {"sides": 20})
    assert stream.finish_reason == "tool_calls"
    answered = [*ASK, stream.message, {"role": "tool", "content": "4"}]
    assert list(engine.chat(answered, tools=TOOLS, max_tokens=3))


def test_thinking_is_reasoning(engine: Engine) -> None:
    stream = engine.chat(ASK, thinking=True, sampling=GREEDY, max_tokens=10)
    assert {type(event) for piece in stream for event in piece.events} == {Reasoning}
    assert stream.message is not None and stream.message.reasoning_content and not stream.message.content
