"""The official clients against a server with the embedded pair."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from serving import Live, live

import ds4py

HI: list[Any] = [{"role": "user", "content": "Write a function that adds two numbers."}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"enum": ["Paris", "Rome"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 3},
            },
            "required": ["city", "days"],
        },
    },
}
NAME = "DS4 tiny"


@pytest.fixture(scope="module")
def server() -> Iterator[Live]:
    engine = ds4py.Engine(device="cpu")
    with live(engine, drafting={"draft": "dspark", "width": 3}) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Live) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def claude(server: Live) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0, timeout=60) as made:
        yield made


@pytest.mark.parametrize("seed", [None, 7])
def test_streams_say_what_whole_answers_say(client: openai.OpenAI, seed: int | None) -> None:
    asked: Any = {"model": NAME, "messages": HI, "max_tokens": 40, "seed": seed, "temperature": 1 if seed else 0}
    whole = client.chat.completions.create(**asked).choices[0].message.content
    for _ in range(2):
        chunks = client.chat.completions.create(**asked, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole
    assert whole


def test_all_endpoints_say_the_same(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    chat = client.chat.completions.create(model=NAME, messages=HI, max_tokens=40, temperature=0)
    response = client.responses.create(model=NAME, input=HI, max_output_tokens=40, temperature=0)
    message = claude.messages.create(model=NAME, messages=HI, max_tokens=40, extra_body={"temperature": 0})
    block: Any = message.content[0]
    assert chat.choices[0].message.content == response.output_text == block.text
    assert chat.choices[0].finish_reason == "length" and message.stop_reason == "max_tokens"


def test_tokens_are_counted_without_an_answer(server: Live, claude: anthropic.Anthropic) -> None:
    tool: Any = {"name": "weather", "description": "The weather", "input_schema": {"type": "object", "properties": {}}}
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    for more in ({}, {"system": "Be brief."}, {"tools": [tool]}, {"thinking": thinking}):
        asked: Any = {"model": NAME, "messages": HI, **more}
        usage = claude.messages.create(**asked, max_tokens=1).usage
        generated = server.metric("generated_tokens_total")
        counted = claude.messages.count_tokens(**asked).input_tokens
        assert counted == usage.input_tokens + (usage.cache_read_input_tokens or 0)
        assert server.metric("generated_tokens_total") == generated
    long: Any = [{"role": "user", "content": "word " * 20000}]  # more than the context, which is what one asks for
    assert claude.messages.count_tokens(model=NAME, messages=long).input_tokens > 20000
    with pytest.raises(anthropic.NotFoundError, match="'other' is not served here"):
        claude.messages.count_tokens(model="other", messages=HI)
    with pytest.raises(anthropic.BadRequestError, match="temperature: this field is not supported"):
        claude.messages.count_tokens(model=NAME, messages=HI, extra_body={"temperature": 1})


def test_a_prompt_that_is_too_long(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    long: Any = [{"role": "user", "content": "word " * 20000}]
    said = r"the prompt has \d{5,} tokens, and the context of \d+ leaves no room"
    with pytest.raises(openai.BadRequestError, match=said) as caught:
        client.chat.completions.create(model=NAME, messages=long)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(anthropic.BadRequestError, match=said) as refused:
        claude.messages.create(model=NAME, messages=long, max_tokens=5)
    body: Any = refused.value.body
    assert body["error"].keys() == {"type", "message"} and body["error"]["type"] == "invalid_request_error"


def test_the_second_turn_is_not_evaluated_again(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    first = client.chat.completions.create(model=NAME, messages=HI, max_tokens=20, seed=1)
    said = first.choices[0].message
    more: list[Any] = [*HI, {"role": "assistant", "content": said.content}, {"role": "user", "content": "Go on."}]
    second = client.chat.completions.create(model=NAME, messages=more, max_tokens=5, seed=1)
    assert first.usage and second.usage and second.usage.prompt_tokens_details
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens
    message = claude.messages.create(model=NAME, messages=more, max_tokens=5)
    assert message.usage.cache_read_input_tokens == second.usage.prompt_tokens - 1
    assert message.usage.input_tokens == 1


def test_logprobs_are_the_targets(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=NAME, messages=HI, max_tokens=20, temperature=0, logprobs=True, top_logprobs=3
    )
    found = answer.choices[0].logprobs
    assert found and found.content and len(found.content) == 20
    for each in found.content:
        assert each.top_logprobs[0].token == each.token  # greedy
        assert each.top_logprobs[0].logprob == each.logprob <= 0
        assert sum(math.exp(top.logprob) for top in each.top_logprobs) <= 1 + 1e-5
    said = b"".join(bytes(each.bytes or []) for each in found.content)
    assert said.decode("utf-8", "replace").startswith(answer.choices[0].message.content or "?")


def test_a_stop_string(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    asked: Any = {"model": NAME, "prompt": "def add(a, b):\n", "max_tokens": 40, "temperature": 0}
    whole = client.completions.create(**asked).choices[0].text
    stop = whole[10:13]
    stopped = client.completions.create(**asked, stop=stop).choices[0]
    assert (stopped.text, stopped.finish_reason) == (whole[: whole.index(stop)], "stop")
    said: Any = claude.messages.create(model=NAME, messages=HI, max_tokens=40, extra_body={"temperature": 0})
    stop = said.content[0].text[10:13]
    message = claude.messages.create(
        model=NAME, messages=HI, max_tokens=40, stop_sequences=["never said", stop], extra_body={"temperature": 0}
    )
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", stop)


def test_json_by_schema(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "size": {"enum": [1, 2, 3]}},
        "required": ["ok", "size"],
        "additionalProperties": False,
    }
    for seed in range(3):
        answer = client.chat.completions.create(
            model=NAME,
            messages=HI,
            max_tokens=400,
            seed=seed,
            response_format={"type": "json_schema", "json_schema": {"name": "found", "schema": schema}},
        )
        assert json.loads(answer.choices[0].message.content or "").keys() == {"ok", "size"}
    message = claude.messages.create(
        model=NAME,
        messages=HI,
        max_tokens=400,
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )
    block: Any = message.content[0]
    assert json.loads(block.text).keys() == {"ok", "size"}


def test_any_json_object(client: openai.OpenAI) -> None:
    """The pair may not come to an end; where it does, the text is an object."""
    asked: Any = {"model": NAME, "messages": HI, "max_tokens": 150, "response_format": {"type": "json_object"}}
    answers = [client.chat.completions.create(**asked, seed=seed).choices[0] for seed in range(8)]
    ended = [json.loads(each.message.content or "") for each in answers if each.finish_reason == "stop"]
    assert ended and all(isinstance(each, dict) for each in ended)


def test_a_schema_that_is_none(client: openai.OpenAI) -> None:
    schema: Any = {"type": "json_schema", "json_schema": {"name": "found", "schema": {"type": "nonsense"}}}
    with pytest.raises(openai.BadRequestError, match="nonsense") as caught:
        client.chat.completions.create(model=NAME, messages=HI, response_format=schema)
    assert caught.value.param == "response_format"


def test_a_call_that_has_to_be(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    asked: Any = {"model": NAME, "messages": HI, "max_tokens": 300, "tools": [WEATHER], "parallel_tool_calls": False}
    answer = client.chat.completions.create(**asked, tool_choice="required").choices[0]
    assert answer.finish_reason == "tool_calls" and answer.message.tool_calls
    (call,) = answer.message.tool_calls
    assert call.type == "function" and call.function.name == "weather"
    arguments = json.loads(call.function.arguments)
    assert arguments["city"] in ("Paris", "Rome") and arguments["days"] in (1, 2, 3)
    # The result goes back, and is answered; streamed, the next call is like it.
    result: Any = {"role": "tool", "tool_call_id": call.id, "content": "Rain"}
    asked["messages"] = [*HI, answer.message, result]
    chunks = list(client.chat.completions.create(**asked, tool_choice="required", stream=True))
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    tool: Any = {"name": "weather", "input_schema": WEATHER["function"]["parameters"]}
    message = claude.messages.create(
        model=NAME,
        messages=HI,
        max_tokens=300,
        tools=[tool],
        tool_choice={"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
    )
    block: Any = message.content[0]
    assert message.stop_reason == "tool_use" and block.input["city"] in ("Paris", "Rome")


def test_thinking_has_its_own_field(client: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    """The pair never learned to stop thinking."""
    answer = client.chat.completions.create(
        model=NAME, messages=HI, max_tokens=20, temperature=0, extra_body={"thinking": {"type": "enabled"}}
    )
    message: Any = answer.choices[0].message
    thought = claude.messages.create(
        model=NAME, messages=HI, max_tokens=20, thinking={"type": "adaptive"}, extra_body={"temperature": 0}
    )
    block: Any = thought.content[0]
    assert block.type == "thinking" and message.reasoning_content == block.thinking
    assert message.content == ""


def test_the_context_is_told_with_both_numbers(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match=r"the prompt has 5000 tokens.* 4096"):
        client.completions.create(model=NAME, prompt=[5] * 5000)


def test_what_was_drafted_is_counted(server: Live, client: openai.OpenAI) -> None:
    before = server.metric("drafted_tokens_total"), server.metric("cycle_width_count")
    client.completions.create(model=NAME, prompt="def add(a, b):\n", max_tokens=30, temperature=0)
    drafted = server.metric("drafted_tokens_total") - before[0]
    assert drafted >= server.metric("cycle_width_count") - before[1] > 0
    assert 0 < server.metric("accepted_tokens_total") < server.metric("drafted_tokens_total")
