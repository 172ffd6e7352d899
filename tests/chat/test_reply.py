"""Answers taken apart: the same in every split, by a second implementation, and whatever is wrong with them."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splitting import every_split, pieces, random_cuts

from ds4py.chat import (
    Content,
    Event,
    Message,
    Reasoning,
    ReplyParser,
    ToolCall,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
    message_of,
    parse_reply,
)

D = "｜DSML｜"
OPEN, CLOSE = f"<{D}tool_calls>", f"</{D}tool_calls>"


def parameter(name: str, value: str, string: bool = True) -> str:
    return f'<{D}parameter name="{name}" string="{"true" if string else "false"}">{value}</{D}parameter>\n'


def invoke(name: str, *parameters: str) -> str:
    return f'<{D}invoke name="{name}">\n{"".join(parameters)}</{D}invoke>\n'


def block(*invokes: str) -> str:
    return f"\n\n{OPEN}\n{''.join(invokes)}{CLOSE}"


WEATHER = invoke("weather", parameter("city", "Paris"), parameter("days", "3", False))
BARE = f'<{D}invoke name="now">\n\n</{D}invoke>\n'

VALID = {
    "plain": ("Hello\n\n", Message("assistant", "Hello\n\n")),
    "reasoning": ("a\nb</think>c", Message("assistant", "c", "a\nb")),
    "only reasoning": ("a\n\n", Message("assistant", "", "a\n\n")),
    "thought twice": ("<think>a</think>b</think>", Message("assistant", "b</think>", "a")),
    "call": (
        "</think>Look:" + block(WEATHER),
        Message("assistant", "Look:", None, (ToolCall("weather", '{"city": "Paris", "days": 3}'),)),
    ),
    "two calls": (
        "x</think>" + block(WEATHER, BARE),
        Message("assistant", "", "x", (ToolCall("weather", '{"city": "Paris", "days": 3}'), ToolCall("now", "{}"))),
    ),
    "calls end the thinking": ("x" + block(BARE), Message("assistant", "", "x", (ToolCall("now", "{}"),))),
    "anything in a string": (
        "</think>" + block(invoke("f", parameter("a>b", f' <{D}invoke name="g">\n"</{D}invoke>\\é '))),
        Message(
            "assistant",
            "",
            None,
            (ToolCall("f", json.dumps({"a>b": f' <{D}invoke name="g">\n"</{D}invoke>\\é '}, ensure_ascii=False)),),
        ),
    ),
    "numbers as they are": (
        "</think>" + block(invoke("f", parameter("n", " [1e999, 0.10, 12345678901234567890] ", False))),
        Message("assistant", "", None, (ToolCall("f", '{"n": [1e999, 0.10, 12345678901234567890]}'),)),
    ),
    "no white space": (
        f'</think>Hi\n\n\n{OPEN}<{D}invoke name="now"></{D}invoke>{CLOSE}',
        Message("assistant", "Hi\n", None, (ToolCall("now", "{}"),)),
    ),
    "text after the calls": (
        "</think>a" + block(BARE) + "\nb" + block(BARE),
        Message("assistant", "a\nb", None, (ToolCall("now", "{}"), ToolCall("now", "{}"))),
    ),
    "end inside the last tag": (
        "</think>" + block(BARE)[:-5],
        Message("assistant", "", None, (ToolCall("now", "{}"),)),
    ),
}

MALFORMED = {
    "unknown tag": f"a\n\n{OPEN}\n<{D}call>",
    "no call": block(),
    "text between": f"\n{OPEN}\nHm {BARE}{CLOSE}",
    "parameter twice": block(invoke("f", parameter("a", "1"), parameter("a", "2"))),
    "no JSON": block(invoke("f", parameter("a", "Paris", False))),
    "NaN": block(invoke("f", parameter("a", "NaN", False))),
    "nested too deeply": block(invoke("f", parameter("a", "[" * 200_000, False))),
    "no name": block(f"<{D}invoke>\n</{D}invoke>"),
    "no string=": block(invoke("f", f'<{D}parameter name="a">1</{D}parameter>')),
    "an end inside a call": block(WEATHER)[:80],
    "an end inside a value": block(WEATHER)[:100],
    "an end before the first call": f"\n\n{OPEN}\n</",
    "endless name": f'{OPEN}<{D}invoke name="' + "x" * 10_000 + f'"></{D}invoke>{CLOSE}',
    "closed too early": f'{OPEN}<{D}invoke name="f">{CLOSE}',
}


def events_of(parts: Sequence[str], thinking: bool = True, tools: bool = True) -> list[Event]:
    parser = ReplyParser(thinking=thinking, tools=tools)
    return [*(event for part in parts for event in parser.push(part)), *parser.finish()]


@pytest.mark.parametrize("name", VALID)
def test_answers_in_every_split(name: str) -> None:
    text, wanted = VALID[name]
    if name == "plain":
        assert parse_reply(text, thinking=False, tools=True) == wanted
        return
    for parts in every_split(text):
        assert message_of(events_of(parts)) == wanted


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_calls_are_content(name: str) -> None:
    text = MALFORMED[name]
    wanted = Message("assistant", text)
    assert parse_reply(text, thinking=False, tools=True) == wanted
    for parts in every_split(text) if len(text) < 1000 else [list(text)]:
        assert message_of(events_of(parts, thinking=False)) == wanted


def test_whole_calls_stand_when_the_next_is_malformed() -> None:
    bad = invoke("f", parameter("a", "Paris", False))
    found = parse_reply("Hi" + block(WEATHER, bad), thinking=False, tools=True)
    assert [call.name for call in found.tool_calls] == ["weather"]
    assert found.content == "Hi\n" + bad + CLOSE


def test_without_tools_calls_are_content() -> None:
    text = "a" + block(WEATHER)
    assert parse_reply(text, thinking=False, tools=False) == Message("assistant", text)
    assert parse_reply(text, thinking=True, tools=False) == Message("assistant", "", text)


def test_events_come_as_soon_as_they_are_certain() -> None:
    parser = ReplyParser(thinking=True, tools=True)
    assert parser.push("a\n") == [Reasoning("a")]
    assert parser.push("b</thi") == [Reasoning("\nb")]
    assert parser.push("nk>c <") == [Content("c ")]
    assert parser.push("d\n\n<") == [Content("<d")]
    assert parser.push(f"{D}tool_calls>" + BARE[:-2]) == []
    assert parser.push(">") == [ToolCallStart(0, "now"), ToolCallArguments(0, "{}"), ToolCallEnd(0)]
    assert parser.push("?") == [Content("?")]
    assert parser.finish() == []


# A second implementation: the whole text, by regular expressions

TAGS = {
    "invoke": rf'<{D}invoke\s+name="[^"]+"\s*>',
    "parameter": rf'<{D}parameter\s+name="[^"]*"\s+string="(?:true|false)"\s*>',
}
CALL = re.compile(
    rf"\s*{TAGS['invoke']}(?:\s*{TAGS['parameter']}(?:(?!</{D}parameter>).)*</{D}parameter>)*\s*</{D}invoke>", re.DOTALL
)
NAME = re.compile(rf'<{D}invoke\s+name="([^"]+)"')
VALUE = re.compile(
    rf'<{D}parameter\s+name="([^"]*)"\s+string="(true|false)"\s*>((?:(?!</{D}parameter>).)*)</{D}parameter>', re.DOTALL
)


def reference(text: str, thinking: bool) -> tuple[str, str, list[tuple[str, object]]]:
    """Reasoning, content and calls."""
    reasoning, content = "", ""
    if text.startswith("<think>"):
        thinking, text = True, text.removeprefix("<think>")
    if thinking:
        end = re.search(rf"</think>|\n{{0,2}}(?={OPEN})|$(?!\n)", text)
        assert end
        reasoning, text = text[: end.start()], text[end.start() :].removeprefix("</think>")
    calls: list[tuple[str, object]] = []
    while found := re.search(rf"(?<!\n)\n{{0,1}}{OPEN}|\n\n{OPEN}", text):
        content += text[: found.start()]
        rest, first = text[found.end() :], len(calls)
        raw = found[0]
        while (call := CALL.match(rest)) and (read := arguments(call[0])):
            calls.append(read)
            rest, raw = rest[call.end() :], ""
        left = rest.lstrip()
        if len(calls) > first and left.startswith(CLOSE):
            text = left.removeprefix(CLOSE)
            continue
        return reasoning, content if len(calls) > first and CLOSE.startswith(left) else content + raw + rest, calls
    return reasoning, content + text, calls


def arguments(call: str) -> tuple[str, object] | None:
    """Name and arguments; None where they are no good."""
    values: dict[str, object] = {}
    name = NAME.search(call)
    assert name
    for key, string, value in VALUE.findall(call[name.end() :]):
        if key in values:
            return None
        try:
            values[key] = value if string == "true" else json.loads(value)
        except ValueError:
            return None
    return name[1], values


def described(message: Message) -> tuple[str, str, list[tuple[str, object]]]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.reasoning_content or "", message.content, calls


WORDS = [f"word{i}" for i in range(40)]
FRAGMENTS = ["<", "</", ">", D, '"', "\n", "\n\n", " ", "</think>", "<think>", OPEN, CLOSE, 'string="false"', "name="]


def mutant(rng: random.Random) -> str:
    """An answer with calls, and some mistakes in it."""
    words = iter(rng.sample(WORDS, len(WORDS)))
    calls = [
        invoke(next(words), *(parameter(next(words), next(words)) for _ in range(rng.randrange(3))))
        for _ in range(rng.randrange(1, 4))
    ]
    text = next(words) + "</think>" * rng.randrange(2) + next(words) + block(*calls) + next(words) * rng.randrange(2)
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(text) + 1)
        to = min(len(text), at + rng.choice([1, 1, 1, 5, 30]))
        match rng.randrange(4):
            case 0:
                text = text[:at] + text[to:]
            case 1:
                text = text[:to] + text[at:]
            case 2:
                text = text[:at] + rng.choice(FRAGMENTS) + text[at:]
            case _:
                text = text[:at] if rng.random() < 0.3 else text[:at] + rng.choice(FRAGMENTS) + text[to:]
    return text


def test_a_thousand_mutated_blocks() -> None:
    """Stream equals one-shot equals the second implementation; nothing is dropped, leaks or hangs."""
    rng, with_calls, malformed = random.Random(5), 0, 0
    started = time.process_time()
    for _ in range(1000):
        text, thinking = mutant(rng), rng.random() < 0.5
        one_shot = parse_reply(text, thinking=thinking, tools=True)
        for parts in (list(text), pieces(text, [rng.randrange(len(text) + 1) for _ in range(8)])):
            assert message_of(events_of(parts, thinking)) == one_shot
        assert described(one_shot) == reference(text, thinking)
        shown = f"{one_shot.reasoning_content} {one_shot.content} {one_shot.tool_calls}"
        assert all(word in shown for word in WORDS if word in text)
        with_calls += bool(one_shot.tool_calls)
        malformed += D in one_shot.content
        if not one_shot.tool_calls and OPEN not in text:
            assert (one_shot.reasoning_content or "") + one_shot.content == without_thinking(text, thinking)
    assert min(with_calls, malformed) > 200, "the mutations are not of both kinds"
    assert time.process_time() - started < 30


def without_thinking(text: str, thinking: bool) -> str:
    """The text less the markers of thinking that count."""
    text, opened = text.removeprefix("<think>"), text.startswith("<think>")
    return text.replace("</think>", "", 1) if thinking or opened else text


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.sampled_from([*FRAGMENTS, "x", WEATHER, BARE, block(BARE)])).map("".join), random_cuts(), st.booleans()
)
def test_any_text_in_any_split(text: str, cuts: list[int], thinking: bool) -> None:
    whole = parse_reply(text, thinking=thinking, tools=True)
    assert message_of(events_of(pieces(text, cuts), thinking)) == whole
    assert message_of(events_of(list(text), thinking)) == whole
    assert described(whole) == reference(text, thinking)


def test_long_values_take_linear_time() -> None:
    """A long value, a character at a time, is no matter of minutes."""
    text = block(invoke("write", parameter("text", "<" * 100_000)))
    started = time.process_time()
    assert len(message_of(events_of(list(text))).tool_calls[0].arguments) > 100_000
    assert time.process_time() - started < 30
