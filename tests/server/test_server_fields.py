"""No field of a request is ignored: each is a field of the request's model, or refused by its name."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest
from anthropic.types.message_create_params import MessageCreateParamsBase
from openai.types.chat.completion_create_params import CompletionCreateParamsBase as ChatParams
from openai.types.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from serving import Live

CHAT, TEXT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
MINIMAL: dict[str, Any] = {
    CHAT: {"messages": [{"role": "user", "content": "Hi"}]},
    TEXT: {"prompt": "Hi"},
    RESPONSES: {"input": "Hi"},
    MESSAGES: {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9},
}
OFFICIAL: dict[str, Any] = {
    CHAT: ChatParams,
    TEXT: CompletionCreateParamsBase,
    RESPONSES: ResponseCreateParamsBase,
    MESSAGES: MessageCreateParamsBase,
}
TOOL = {"type": "function", "function": {"name": "f"}}
DEFAULTS = [
    (CHAT, {"n": 1, "store": False, "parallel_tool_calls": True, "service_tier": "auto", "user": "me", "stop": None}),
    (CHAT, {"metadata": {"a": "b"}, "modalities": ["text"], "response_format": {"type": "text"}, "logprobs": False}),
    (CHAT, {"reasoning_effort": "none", "thinking": {"type": "disabled"}, "tools": [], "tool_choice": "none"}),
    (TEXT, {"n": 1, "best_of": 1, "echo": False, "suffix": None, "user": "me"}),
    (RESPONSES, {"store": False, "truncation": "disabled", "background": False, "previous_response_id": None}),
    (RESPONSES, {"text": {"format": {"type": "text"}}, "reasoning": {"effort": None}, "include": [], "tools": []}),
    (MESSAGES, {"thinking": {"type": "disabled"}, "metadata": {"user_id": "me"}, "service_tier": "auto"}),
    (MESSAGES, {"cache_control": {"type": "ephemeral"}, "tool_choice": {"type": "none"}, "stop_sequences": []}),
]
DEEP: Any = {"enum": json.loads("[" * 100 + "]" * 100)}
PARAMETERS, SCHEMA = "tools[0].function.parameters", "response_format.json_schema.schema"
REFUSED = [
    (CHAT, {"n": 2}, "n"),
    (CHAT, {"store": True}, "store"),
    (CHAT, {"tools": [TOOL], "parallel_tool_calls": False}, "parallel_tool_calls"),
    (CHAT, {"tools": [TOOL], "response_format": {"type": "json_object"}}, "tools"),
    (CHAT, {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice"),
    (CHAT, {"reasoning_effort": "medium"}, "reasoning_effort"),
    (CHAT, {"reasoning_effort": "high", "thinking": {"type": "disabled"}}, "reasoning_effort"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    (CHAT, {"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    (CHAT, {"tools": [{"type": "custom", "custom": {"name": "f"}}]}, "tools[0].type"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}, "tools[0].function.strict"),
    (CHAT, {"top_logprobs": 2}, "top_logprobs"),
    (CHAT, {"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    (CHAT, {"max_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
    (CHAT, {"max_tokens": "3"}, "max_tokens"),
    (CHAT, {"temperature": True}, "temperature"),
    (CHAT, {"messages": [{"role": "user", "content": "Hi", "name": "me"}]}, "messages[0].name"),
    (CHAT, {"messages": [{"role": "function", "content": "Hi"}]}, "messages[0].role"),
    (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
    (CHAT, {"messages": [{"role": "user", "content": {}}]}, "messages[0].content"),
    (CHAT, {"messages": []}, "messages"),
    (CHAT, {"response_format": {"type": "grammar"}}, "response_format.type"),
    (CHAT, {"stop": [""]}, "stop[0]"),
    (CHAT, {"logit_bias": {"word": 1}}, "logit_bias.word"),
    (CHAT, {"stop": ["x"] * 65}, "stop"),
    (CHAT, {"tools": [{"type": "function", "function": {"name": "f", "parameters": DEEP}}]}, PARAMETERS),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": DEEP}}}, SCHEMA),
    (TEXT, {"stop": ["x"] * 65}, "stop"),
    (RESPONSES, {"tools": [{"type": "function", "name": "f", "parameters": DEEP}]}, "tools[0].parameters"),
    (RESPONSES, {"text": {"format": {"type": "json_schema", "schema": DEEP}}}, "text.format.schema"),
    (TEXT, {"prompt": ["a", "b"]}, "prompt"),
    (TEXT, {"echo": True}, "echo"),
    (RESPONSES, {"previous_response_id": "resp_1"}, "previous_response_id"),
    (RESPONSES, {"store": True}, "store"),
    (RESPONSES, {"tools": [{"type": "web_search"}]}, "tools[0].type"),
    (RESPONSES, {"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    (RESPONSES, {"text": {"format": {"type": "grammar"}}}, "text.format.type"),
    (RESPONSES, {"include": ["reasoning.encrypted_content"]}, "include[0]"),
    (RESPONSES, {"reasoning": {"summary": "auto"}}, "reasoning.summary"),
]
REFUSED_MESSAGES = [
    ({"tool_choice": {"type": "any"}}, "tool_choice"),
    ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "tool_choice.disable_parallel_tool_use"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
    ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages[0].content[0].type"),
    ({"output_config": {"effort": "medium"}}, "output_config.effort"),
    ({"thinking": {"type": "between_tools"}}, "thinking.type"),
    ({"stop_sequences": ["x"] * 65}, "stop_sequences"),
    ({"tools": [{"name": "f", "input_schema": DEEP}]}, "tools[0].input_schema"),
]


@pytest.mark.parametrize("path", MINIMAL)
def test_every_official_field_is_known_or_refused(server: Live, path: str) -> None:
    names = list(OFFICIAL[path].__annotations__)
    schema = server.get("/openapi.json").json()
    model = schema["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    known = schema["components"]["schemas"][model.rpartition("/")[2]]["properties"]
    assert {"stream", "model", "temperature"} <= known.keys()
    for name in [*names, "made_up"]:
        if name not in known:
            answer = server.post(path, MINIMAL[path] | {name: "x"})
            assert answer.status_code == 400, name
            assert f"{name}: this field is not supported" in answer.text


@pytest.mark.parametrize(("path", "fields"), DEFAULTS)
def test_values_that_mean_the_default_pass(server: Live, path: str, fields: dict[str, Any]) -> None:
    answer = server.post(path, MINIMAL[path] | fields)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(("path", "fields", "param"), REFUSED)
def test_refused_by_name(server: Live, path: str, fields: dict[str, Any], param: str) -> None:
    answer = server.post(path, MINIMAL[path] | fields)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert error["message"].startswith(param)


@pytest.mark.parametrize(("fields", "param"), REFUSED_MESSAGES)
def test_refused_by_name_in_messages(server: Live, fields: dict[str, Any], param: str) -> None:
    answer = server.post(MESSAGES, MINIMAL[MESSAGES] | fields)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(f"{param}: ")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"[" * 100_000,
        b'{"messages": "\xff"}',
        b'{"messages": [{"role": "user", "content": "Hi"}], "\\ud800": 1}',
        b'{"messages": [{"role": "user", "content": "Hi"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "Hi"}], "seed": ' + b"9" * 5000 + b"}",
        b'{"messages": [' + b"1," * 500_000 + b"1]}",
        b'{"messages": [{"role": "user", "content": [' + b"1," * 500_000 + b"1]}]}",
        b"{" + b",".join(b'"%d":0' % i for i in range(200_000)) + b"}",
    ],
    ids=lambda content: content[:30].decode("ascii", "replace"),
)
def test_bodies_that_are_no_requests(server: Live, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    started = time.process_time()
    answer = httpx.post(server.url + CHAT, content=content, headers=headers, timeout=60)
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert 0 < len(message) < 1000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("stream", [False, True])
def test_half_a_character_can_be_repeated(server: Live, stream: bool) -> None:
    asked = '{"input": "Hi", "instructions": "\\ud800", "stream": ' + str(stream).lower() + "}"
    headers = {"content-type": "application/json"}
    answer = httpx.post(server.url + RESPONSES, content=asked, headers=headers, timeout=60)
    assert answer.status_code == 200 and '"instructions":"?"' in answer.text
