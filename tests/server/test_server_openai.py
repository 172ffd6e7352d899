"""OpenAI's official client against the server, with answers that are written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from fake_engine import FakeEngine
from serving import Live

from ds4py import ChatPiece
from ds4py.chat.reply import Content, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart
from ds4py.errors import BackendError, RequestError
from ds4py.sampling.logprobs import TokenLogprobs
from ds4py.server.openai.response_item_writer import ResponseItemWriter
from ds4py.server.openai.responses import ResponseRequest

pytestmark = pytest.mark.fast

HI: list[Any] = [{"role": "user", "content": "Hi"}]
CALL = (
    Content("Let me see."),
    ToolCallStart(0, "weather"),
    ToolCallArguments(0, '{"city": '),
    ToolCallArguments(0, '"Paris"}'),
    ToolCallEnd(0),
    ToolCallStart(1, "time"),
    ToolCallArguments(1, "{}"),
    ToolCallEnd(1),
)
WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "Of a city", "parameters": {"type": "object", "properties": {}}},
}


@pytest.fixture(scope="module")
def client(server: Live) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made


class TestChat:
    def test_whole(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        answer = client.chat.completions.create(model="fake", messages=HI)
        assert answer.choices[0].message.content == "Hello"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.choices[0].logprobs is None
        assert answer.usage and (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, 2)
        assert answer.usage.prompt_tokens_details and answer.usage.prompt_tokens_details.cached_tokens == 1

    def test_stream(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        stream = client.chat.completions.create(
            model="fake", messages=HI, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert [c.choices[0].delta.content for c in chunks[:-1]] == ["", "Hel", "lo", None]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None, None, None, "stop"]
        assert not chunks[-1].choices and chunks[-1].usage and chunks[-1].usage.total_tokens == 4
        assert len({c.id for c in chunks}) == 1

    def test_the_engine_gets_what_was_asked(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        client.chat.completions.create(
            model="fake",
            messages=[
                {"role": "system", "content": "Be terse."},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            ],
            temperature=0.5,
            top_p=0.9,
            seed=7,
            max_completion_tokens=5,
            stop=["END"],
            presence_penalty=0.1,
            frequency_penalty=0.2,
            logit_bias={"3": -100},
            extra_body={"top_k": 4, "min_p": 0.05, "repeat_penalty": 1.1, "repeat_last_n": 64},
        )
        asked = engine.calls[0]
        assert asked["messages"] == [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi"}]
        assert (asked["max_tokens"], asked["stop"]) == (5, ("END",))
        sampling = asked["sampling"]
        assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.top_k) == (0.5, 0.9, 7, 4)
        assert (sampling.min_p, sampling.repetition_penalty, sampling.penalty_last_n) == (0.05, 1.1, 64)
        assert (sampling.presence_penalty, sampling.frequency_penalty) == (0.1, 0.2)
        assert sampling.logit_bias == {3: -100}

    def test_tools(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts, engine.finish = CALL, "tool_calls"
        answer = client.chat.completions.create(model="fake", messages=HI, tools=[WEATHER])
        message = answer.choices[0].message
        assert answer.choices[0].finish_reason == "tool_calls"
        assert message.content == "Let me see."
        calls: Any = message.tool_calls
        assert [(c.function.name, c.function.arguments) for c in calls] == [
            ("weather", '{"city": "Paris"}'),
            ("time", "{}"),
        ]
        assert engine.calls[0]["tools"] == [WEATHER]
        # The answer goes back as it came, with the results.
        results: list[Any] = [{"role": "tool", "tool_call_id": c.id, "content": "12"} for c in calls]
        client.chat.completions.create(model="fake", messages=[*HI, message, *results], tools=[WEATHER])  # type: ignore[list-item]
        sent = engine.calls[1]["messages"]
        assert [each["id"] for each in sent[1]["tool_calls"]] == [each["tool_call_id"] for each in sent[2:]]
        assert sent[1]["tool_calls"][0]["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}

    def test_tools_in_a_stream(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts, engine.finish = CALL, "tool_calls"
        with client.chat.completions.stream(model="fake", messages=HI, tools=[WEATHER]) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
        calls: Any = message.tool_calls
        assert [(c.function.name, c.function.arguments) for c in calls] == [
            ("weather", '{"city": "Paris"}'),
            ("time", "{}"),
        ]

    def test_no_tool_is_offered_where_none_may_be_chosen(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        client.chat.completions.create(model="fake", messages=HI, tools=[WEATHER], tool_choice="none")
        assert engine.calls[0]["tools"] is None

    def test_reasoning_has_its_own_field(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts = (Reasoning("Hm"), Reasoning("m."), Content("Yes."))
        answer = client.chat.completions.create(model="fake", messages=HI, reasoning_effort="high")
        message: Any = answer.choices[0].message
        assert (message.reasoning_content, message.content) == ("Hmm.", "Yes.")
        assert (engine.calls[0]["thinking"], engine.calls[0]["effort"]) == (True, "high")
        chunks = list(
            client.chat.completions.create(
                model="fake", messages=HI, stream=True, extra_body={"thinking": {"type": "enabled"}}
            )
        )
        deltas: list[Any] = [c.choices[0].delta for c in chunks]
        assert "".join(getattr(d, "reasoning_content", None) or "" for d in deltas) == "Hmm."
        assert "".join(d.content or "" for d in deltas) == "Yes."
        assert (engine.calls[1]["thinking"], engine.calls[1]["effort"]) == (True, None)

    def test_logprobs(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        asked: Any = {"model": "fake", "messages": HI, "logprobs": True, "top_logprobs": 2}
        found = client.chat.completions.create(**asked).choices[0].logprobs
        assert found and found.content
        assert [(e.token, e.bytes, e.logprob) for e in found.content] == [("A", [65], -0.5), ("B", [66], -0.5)]
        assert [(t.token, t.logprob) for t in found.content[0].top_logprobs] == [("B", -1.0), ("C", -2.0)]
        streamed = [c.choices[0].logprobs for c in client.chat.completions.create(**asked, stream=True)]
        assert [e for each in streamed if each and each.content for e in each.content] == found.content

    def test_the_length_limit_is_told(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        answer = client.chat.completions.create(model="fake", messages=HI, max_tokens=1)
        assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("length", "Hel")


class TestCompletions:
    def test_text_and_ids(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        answer = client.completions.create(model="fake", prompt="Once", max_tokens=2)
        assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("Hello", "length")
        client.completions.create(model="fake", prompt=[1, 2, 3])
        client.completions.create(model="fake", prompt=["Twice"])
        assert [each["prompt"] for each in engine.calls] == ["Once", [1, 2, 3], "Twice"]

    def test_stream_and_logprobs(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        asked: Any = {"model": "fake", "prompt": "Once", "logprobs": 1}
        whole = client.completions.create(**asked).choices[0].logprobs
        assert whole and whole.tokens == ["A", "B"] and whole.token_logprobs == [-0.5, -0.5]
        assert whole.top_logprobs == [{"B": -1.0}, {"B": -1.0}] and whole.text_offset == [0, 1]
        chunks = list(client.completions.create(**asked, stream=True))
        assert [c.choices[0].text for c in chunks] == ["Hel", "lo", ""]
        assert chunks[1].choices[0].logprobs and chunks[1].choices[0].logprobs.text_offset == [1]


class TestResponses:
    def test_whole(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts = (Reasoning("Hm."), Content("Yes"), Content("."))
        answer = client.responses.create(
            model="fake", input="Hi", instructions="Be terse.", max_output_tokens=9, reasoning={"effort": "max"}
        )
        assert answer.output_text == "Yes." and answer.status == "completed"
        assert [each.type for each in answer.output] == ["reasoning", "message"]
        thought: Any = answer.output[0]
        assert thought.content[0].text == "Hm."
        assert answer.usage and answer.usage.input_tokens_details.cached_tokens == 5
        assert answer.usage.output_tokens_details.reasoning_tokens == 1
        assert engine.calls[0]["messages"] == [
            {"role": "system", "content": "Be terse."},
            {"role": "user", "content": "Hi"},
        ]
        assert (engine.calls[0]["thinking"], engine.calls[0]["effort"]) == (True, "max")

    def test_stream_says_the_same(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts, engine.finish = (Reasoning("Hm."), *CALL), "tool_calls"
        tool: Any = {"type": "function", "name": "weather", "parameters": {}, "strict": False}
        with client.responses.stream(model="fake", input="Hi", tools=[tool]) as stream:
            events = list(stream)
            answer = stream.get_final_response()
        assert [each.sequence_number for each in events] == list(range(len(events)))
        assert [each.type for each in events][:2] == ["response.created", "response.in_progress"]
        assert events[-1].type == "response.completed"
        deltas = "".join(each.delta for each in events if each.type == "response.output_text.delta")
        assert deltas == answer.output_text == "Let me see."
        calls: list[Any] = [each for each in answer.output if each.type == "function_call"]
        assert [(c.name, c.arguments) for c in calls] == [("weather", '{"city": "Paris"}'), ("time", "{}")]

    def test_a_conversation_goes_back(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.parts, engine.finish = (Reasoning("Hm."), *CALL[:5]), "tool_calls"
        answer = client.responses.create(model="fake", input="Hi")
        call: Any = answer.output[-1]
        items: list[Any] = [
            {"role": "user", "content": "Hi"},
            *answer.output,
            {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"},
        ]
        client.responses.create(model="fake", input=items)
        sent = engine.calls[1]["messages"]
        assert [each["role"] for each in sent] == ["user", "assistant", "tool"]
        assert (sent[1]["reasoning_content"], sent[1]["content"]) == ("Hm.", "Let me see.")
        assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == call.call_id

    def test_length_and_logprobs(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        answer = client.responses.create(
            model="fake", input="Hi", max_output_tokens=1, top_logprobs=1, include=["message.output_text.logprobs"]
        )
        assert answer.status == "incomplete"
        assert answer.incomplete_details and answer.incomplete_details.reason == "max_output_tokens"
        part: Any = answer.output[0]
        assert part.content[0].logprobs[0].token == "A"


class TestErrors:
    def test_a_field_is_named(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="fake", messages=HI, n=2)
        assert caught.value.param == "n" and caught.value.code == "unsupported_value"

    def test_another_model(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError, match="'gpt' is not served here, but 'fake'"):
            client.chat.completions.create(model="gpt", messages=HI)

    def test_a_context_that_is_too_small(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        with pytest.raises(openai.BadRequestError, match=r"100 tokens.* 64"):
            client.chat.completions.create(model="fake", messages=[{"role": "user", "content": "x" * 100}])

    @pytest.mark.parametrize("stream", [False, True])
    def test_the_engine_fails(self, engine: FakeEngine, client: openai.OpenAI, stream: bool) -> None:
        engine.error = BackendError("no room on the device")
        with pytest.raises(openai.APIError, match="no room on the device"):
            list(client.chat.completions.create(model="fake", messages=HI, stream=stream))

    def test_the_engine_refuses(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.error = RequestError("messages[0]: nothing to answer")
        with pytest.raises(openai.BadRequestError) as caught:
            client.chat.completions.create(model="fake", messages=HI)
        assert caught.value.param == "messages[0]"

    def test_a_bug_is_not_shown(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.error = ZeroDivisionError("a secret")
        with pytest.raises(openai.InternalServerError) as caught:
            client.chat.completions.create(model="fake", messages=HI)
        assert "secret" not in str(caught.value)

    def test_responses_fail(self, engine: FakeEngine, client: openai.OpenAI) -> None:
        engine.error = BackendError("no room on the device")
        last = list(client.responses.create(model="fake", input="Hi", stream=True))[-1]
        assert last.type == "response.failed"
        assert last.response.error and "no room" in last.response.error.message


def test_models(server: Live, engine: FakeEngine, client: openai.OpenAI) -> None:
    assert [each.id for each in client.models.list()] == ["fake"]
    assert client.models.retrieve("fake").owned_by == "ds4py"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_what_is_thought_has_no_logprobs_in_a_response() -> None:
    """They would be told as those of the text, which begins after them."""

    class Words:
        def token_bytes(self, token: int) -> bytes:
            return ["hm", "</think>", "yes"][token].encode()

    asked = ResponseRequest(input="Hi", reasoning={"effort": "high"}, include=["message.output_text.logprobs"])
    answer = ResponseItemWriter("fake", Words(), asked)  # type: ignore[arg-type]
    for events, tokens in ([[Reasoning("hm")], (0,)], [[Content("yes")], (1, 2)]):
        piece = ChatPiece(tuple(events), tokens, tuple(TokenLogprobs(token, -1.0) for token in tokens))
        answer.piece(piece, None)  # type: ignore[arg-type]
    (text,) = answer.body()["output"][1]["content"]
    assert (text["text"], [each["token"] for each in text["logprobs"]]) == ("yes", ["yes"])
