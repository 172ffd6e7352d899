"""Anthropic's official client against the server, with answers that are written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from fake_engine import FakeEngine
from serving import Live

from ds4py.chat.reply import Content, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart
from ds4py.errors import BackendError

pytestmark = pytest.mark.fast

HI: list[Any] = [{"role": "user", "content": "Hi"}]
PARTS = (
    Reasoning("Hm"),
    Reasoning("m."),
    Content("Let "),
    Content("me see."),
    ToolCallStart(0, "weather"),
    ToolCallArguments(0, '{"city": '),
    ToolCallArguments(0, '"Paris"}'),
    ToolCallEnd(0),
)
WEATHER: Any = {"name": "weather", "description": "Of a city", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def client(server: Live) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=60) as made:
        yield made


def test_whole(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    answer = client.messages.create(
        model="fake",
        max_tokens=9,
        messages=HI,
        system="Be terse.",
        stop_sequences=["END"],
        extra_body={"temperature": 0.5},
    )
    block: Any = answer.content[0]
    assert (block.type, block.text, answer.stop_reason) == ("text", "Hello", "end_turn")
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens, answer.usage.output_tokens) == (6, 5, 2)
    asked = engine.calls[0]
    assert asked["messages"] == [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}]
    assert (asked["max_tokens"], asked["stop"], asked["sampling"].temperature) == (9, ("END",), 0.5)


def test_stream_says_the_same(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    engine.parts, engine.finish = PARTS, "tool_calls"
    asked: Any = {
        "model": "fake",
        "max_tokens": 99,
        "messages": HI,
        "tools": [WEATHER],
        "thinking": {"type": "enabled", "budget_tokens": 50},
    }
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    for answer in (whole, streamed):
        found: list[Any] = answer.content
        assert [each.type for each in found] == ["thinking", "text", "tool_use"]
        assert (found[0].thinking, found[1].text) == ("Hmm.", "Let me see.")
        assert (found[2].name, found[2].input) == ("weather", {"city": "Paris"})
        assert answer.stop_reason == "tool_use" and answer.usage.output_tokens == 8
    assert engine.calls[0]["thinking"] is True
    assert engine.calls[0]["tools"][0]["function"]["parameters"] == WEATHER["input_schema"]


def test_a_conversation_goes_back(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    engine.parts, engine.finish = PARTS, "tool_calls"
    answer = client.messages.create(model="fake", max_tokens=99, messages=HI, tools=[WEATHER])
    call: Any = answer.content[-1]
    result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "Rain"}]}
    more: list[Any] = [*HI, answer.to_param(), {"role": "user", "content": [result, {"type": "text", "text": "And?"}]}]
    client.messages.create(model="fake", max_tokens=99, messages=more, tools=[WEATHER])
    sent = engine.calls[1]["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "tool", "user"]
    assert (sent[1]["reasoning_content"], sent[1]["content"]) == ("Hmm.", "Let me see.")
    assert sent[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}
    assert (sent[2]["tool_call_id"], sent[2]["content"]) == (call.id, "Rain")


def test_a_failed_call_says_so(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    result: Any = {"type": "tool_result", "tool_use_id": "1", "content": "no such city", "is_error": True}
    client.messages.create(model="fake", max_tokens=9, messages=[{"role": "user", "content": [result]}])
    assert engine.calls[0]["messages"][0]["content"] == "Error: no such city"


def test_the_length_limit_is_told(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    answer = client.messages.create(model="fake", max_tokens=1, messages=HI)
    assert answer.stop_reason == "max_tokens"


def test_a_field_is_named(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\].content\[0\].type: 'image'") as caught:
        image: Any = {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/x.png"}}
        client.messages.create(model="fake", max_tokens=9, messages=[{"role": "user", "content": [image]}])
    body: Any = caught.value.body
    assert body["type"] == "error" and body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
def test_the_engine_fails(engine: FakeEngine, client: anthropic.Anthropic, stream: bool) -> None:
    engine.error = BackendError("no room on the device")
    with pytest.raises(anthropic.APIStatusError, match="no room on the device"):
        list(client.messages.create(model="fake", max_tokens=9, messages=HI, stream=stream))


def test_models(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    assert [each.id for each in client.models.list()] == ["fake"]


def test_numbers_beyond_all_bounds_are_json(engine: FakeEngine, client: anthropic.Anthropic) -> None:
    digits = "9" * 5000
    arguments = f'{{"a": [1e999, -12345678901234567890, 0.5], "b": {digits}}}'
    engine.parts, engine.finish = (ToolCallStart(0, "f"), ToolCallArguments(0, arguments), ToolCallEnd(0)), "tool_calls"
    message = client.messages.create(model="fake", messages=HI, max_tokens=9)
    block: Any = message.content[0]
    assert block.input == {"a": ["1e999", -12345678901234567890, 0.5], "b": digits}
