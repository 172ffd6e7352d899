"""Grammars on the embedded pair: what is generated obeys them, with and without drafting, thinking and tools."""

from __future__ import annotations

import gc
import json
import random
import sys
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import real_vocabulary
from chi_square import Law, bound, chi_square
from generating import GREEDY, ids_of, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

import ds4py
from ds4py import Sampling, Session
from ds4py.chat import parse_reply
from ds4py.errors import RequestError
from ds4py.grammar import AfterThinking, Constraint, Matcher, json_object, json_schema, lark, regex, tool_calls
from ds4py.grammar.base import allows, unpacked
from ds4py.tokenizer import Tokenizer

STYLES = [
    ("off", "token"),
    ("dspark", "token"),
    ("dspark", "block"),
    ("dspark", "match"),
    ("lookup", "token"),
    ("auto", "block"),
]


@pytest.fixture(scope="module")
def opened(embedded: ds4py.Engine) -> Iterator[Session]:
    with embedded.session(context=1024) as session:
        yield session


@pytest.fixture
def session(opened: Session) -> Session:
    opened.rewind(0)
    return opened


def run(
    session: Session, constraint: Constraint, style: tuple[str, str] = STYLES[0], **options: Any
) -> list[ds4py.Piece]:
    draft, rule = style
    options = {"prompt": '{"name": "', "max_tokens": 300, "sampling": Sampling(seed=1)} | options
    return list(session.generate(draft=draft, accept=rule, width=5, constraint=constraint, **options))  # type: ignore[arg-type]


# Schemas


def random_schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    kind = rng.choice(["enum", "integer", "boolean", "string", "number", "array", "object"][: 7 if depth < 2 else 5])
    match kind if depth else "object":
        case "enum":
            return {"enum": rng.sample(["red", "green", 7, None, True, "né"], 3)}
        case "integer":
            low = rng.randrange(-9, 9)
            return {"type": "integer", "minimum": low, "maximum": low + rng.randrange(1, 100)}
        case "string":
            return {"type": "string", "maxLength": rng.randrange(1, 9)}
        case "number":
            return {"type": "number", "minimum": 0, "maximum": 1}
        case "array":
            return {"type": "array", "items": random_schema(rng, depth + 1), "minItems": 1, "maxItems": 3}
        case "object":
            names = rng.sample(["a", "key", "the name", "é"], rng.randrange(1, 4))
            return {
                "type": "object",
                "properties": {name: random_schema(rng, depth + 1) for name in names},
                "required": names[: rng.randrange(len(names) + 1)],
                "additionalProperties": False,
            }
        case _:
            return {"type": "boolean"}


def validate(value: Any, schema: dict[str, Any]) -> None:
    if "enum" in schema:
        assert any(value == each and type(value) is type(each) for each in schema["enum"])
        return
    match schema["type"]:
        case "object":
            assert isinstance(value, dict)
            assert set(schema["required"]) <= set(value) <= set(schema["properties"])
            for name, inner in value.items():
                validate(inner, schema["properties"][name])
        case "array":
            assert isinstance(value, list) and schema["minItems"] <= len(value) <= schema["maxItems"]
            for inner in value:
                validate(inner, schema["items"])
        case "integer":
            assert type(value) is int and schema["minimum"] <= value <= schema["maximum"]
        case "number":
            assert type(value) in (int, float) and 0 <= value <= 1
        case "string":
            assert isinstance(value, str) and len(value) <= schema["maxLength"]
        case "boolean":
            assert type(value) is bool


@pytest.mark.parametrize("seed", range(50))
def test_what_is_generated_is_valid(session: Session, seed: int) -> None:
    schema = random_schema(random.Random(seed))
    style = STYLES[seed % len(STYLES)]
    pieces = run(session, json_schema(session.tokenizer, schema), style, sampling=Sampling(seed=seed))
    assert pieces[-1].finish_reason == "stop"
    validate(json.loads(text_of(pieces)), schema)


def follows(matcher: Matcher, token: int) -> bool:
    allowed = allows(matcher.mask(), token)
    if allowed:
        matcher.advance(token)
    return allowed


@pytest.mark.parametrize("schema_seed", range(6))
def test_greedy_texts_do_not_depend_on_who_proposes(session: Session, schema_seed: int) -> None:
    constraint = json_schema(session.tokenizer, random_schema(random.Random(schema_seed)))
    texts = set()
    for style in STYLES:
        session.rewind(0)
        texts.add(text_of(run(session, constraint, style, sampling=GREEDY, max_tokens=80)))
    assert len(texts) == 1


def test_a_text_is_extended_after_a_grammar_has_ended(session: Session) -> None:
    first = run(session, json_schema(session.tokenizer, {"enum": ["yes"]}), STYLES[1])
    assert text_of(first) == '"yes"'
    assert session.tokenizer.decode(session.history()) == '<｜begin▁of▁sentence｜>{"name": ""yes"'
    more = list(session.generate(max_tokens=5, sampling=GREEDY))
    assert len(ids_of(more)) == 5


# The law of sampled texts

ANSWERS = ["red", "green", "blue", "grey"]


def law(session: Session, constraint: Constraint, sampling: Sampling) -> Law:
    """Every way to write an answer in tokens, with its probability by the target's logits."""
    sampler, start, found = ds4py._native.Sampler(sampling.policy()), session.position, {}
    pending: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while pending:
        tokens, chance = pending.pop()
        session.rewind(start)
        if tokens:
            session.prefill(tokens)
        matcher = constraint.start()
        for token in tokens:
            matcher.advance(token)
        if matcher.complete:
            found[tokens] = chance
            continue
        logits, mask = session.logits(), matcher.mask()
        assert mask is not None
        row = sampler.distribution(np.where(unpacked(mask, len(logits)), logits, -np.inf).astype(np.float32))
        pending += [((*tokens, int(token)), chance * float(row[token])) for token in np.flatnonzero(row)]
    session.rewind(start)
    return found


@pytest.mark.parametrize("style", [("off", "token"), ("dspark", "token"), ("dspark", "block")])
def test_sampled_texts_follow_the_targets_law(session: Session, style: tuple[str, str]) -> None:
    session.prefill(session.tokenizer.encode("colour: "))
    policy = {"temperature": 1.5, "top_p": 0.95}
    constraint = regex(session.tokenizer, "|".join(ANSWERS))
    wanted, found, start = law(session, constraint, Sampling(**policy)), Counter[tuple[int, ...]](), session.position
    for seed in range(250):
        session.rewind(start)
        pieces = run(session, constraint, style, prompt=(), sampling=Sampling(seed=seed, **policy))
        found[tuple(ids_of(pieces))] += 1
    assert set(found) <= set(wanted)
    assert len({session.tokenizer.decode(tokens) for tokens in found}) >= 3
    statistic, freedom = chi_square(found, wanted)
    assert freedom >= 3
    assert statistic < bound(freedom)


# Matchers


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 6)), max_size=25), st.booleans())
def test_rolling_back_is_never_having_been_there(
    embedded: ds4py.Engine, moves: list[tuple[int, int]], thinking: bool
) -> None:
    tokenizer = embedded.tokenizer
    inner = json_schema(tokenizer, {"type": "array", "items": {"enum": ["a", "bc", 12]}})
    constraint: Constraint = AfterThinking(tokenizer, inner) if thinking else inner
    matcher, tokens = constraint.start(), list[int]()
    for choice, back in moves:
        options = choices(matcher, tokenizer)
        tokens.append(options[choice % len(options)])
        matcher.advance(tokens[-1])
        matcher.rollback(min(back, len(tokens)))
        del tokens[max(0, len(tokens) - back) :]
        fresh = constraint.start()
        for token in tokens:
            fresh.advance(token)
        assert choices(matcher, tokenizer) == choices(fresh, tokenizer)
        assert matcher.complete == fresh.complete


def choices(matcher: Matcher, tokenizer: Tokenizer) -> list[int]:
    """What may follow; while thinking a few tokens and its end."""
    mask = matcher.mask()
    if mask is None:
        return [5]
    ids = np.flatnonzero(unpacked(mask, tokenizer.vocab_size)).tolist()
    return [7, 6] if len(ids) > 2000 else ids


def test_the_end_is_allowed_exactly_where_the_grammar_may_end(embedded: ds4py.Engine) -> None:
    matcher = regex(embedded.tokenizer, "a(bb)*").start()
    ends = []
    for token in embedded.tokenizer.encode("a", add_bos=False) + embedded.tokenizer.encode("b", add_bos=False) * 4:
        ends.append(allows(matcher.mask(), 1))
        matcher.advance(token)
    assert [*ends, allows(matcher.mask(), 1)] == [False, True, False, True, False, True]
    assert not matcher.complete
    matcher.advance(1)
    assert matcher.complete


def test_a_large_vocabulary() -> None:
    """No control token, marker or unused entry gets into a string."""
    real = Tokenizer.from_metadata(real_vocabulary.metadata())
    matcher = json_schema(real, {"type": "string"}).start()
    matcher.advance(real.encode('"')[0])
    allowed = unpacked(matcher.mask(), real.vocab_size)  # type: ignore[arg-type]
    assert allowed.sum() > 100_000
    assert not allowed[[0, 1, 2, 128803, 128804]].any()
    assert not any(allowed[token] for token in range(real.vocab_size) if not real.is_text(token))


# Thinking, and tools


def test_thinking_is_free_and_does_not_end_the_text(session: Session) -> None:
    constraint = AfterThinking(session.tokenizer, json_schema(session.tokenizer, {"enum": ["yes", "no"]}))
    bias = Sampling(seed=3, logit_bias={6: 12.0, 1: 12.0})
    text = text_of(run(session, constraint, STYLES[1], prompt=[0, 3, 4, 5], sampling=bias))
    _, end, answer = text.partition("</think>")
    assert end and answer in ('"yes"', '"no"')
    matcher = constraint.start()
    assert [allows(matcher.mask(), token) for token in (1, 6, 7)] == [False, True, True]


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "unit": {"enum": ["C", "F", None]},
                    "days": {"type": "integer", "minimum": 1, "maximum": 7},
                    "place": {"$ref": "#/$defs/place"},
                    "now": {"type": "boolean"},
                },
                "required": ["days"],
                "$defs": {"place": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", [None, "weather", "now"])
def test_calls_that_are_asked_for(session: Session, seed: int, name: str | None) -> None:
    constraint = tool_calls(session.tokenizer, TOOLS, name=name, parallel=False)
    pieces = run(session, constraint, STYLES[seed % len(STYLES)], sampling=Sampling(seed=seed))
    (call,) = parse_reply(text_of(pieces), thinking=False, tools=True).tool_calls
    arguments = json.loads(call.arguments)
    assert pieces[-1].finish_reason == "stop" and call.name == (name or call.name)
    if call.name == "weather":
        assert 1 <= arguments.pop("days") <= 7
        assert arguments.pop("unit", "C") in ("C", "F", None)
        assert len(arguments.pop("place", [])) <= 2 and type(arguments.pop("now", True)) is bool
    assert arguments == {}


def test_strings_of_calls_are_any_text(embedded: ds4py.Engine) -> None:
    free = {
        "type": "function",
        "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}, "b": {}}}},
    }
    matcher = tool_calls(embedded.tokenizer, [free]).start()
    D = "｜DSML｜"
    text = (
        f'\n\n<{D}tool_calls>\n<{D}invoke name="f">\n<{D}parameter name="a" string="true">any <b>\n"é</{D}parameter>\n'
    )
    text += f'<{D}parameter name="b" string="false">[1, {{"x": null}}]</{D}parameter>\n</{D}invoke>\n</{D}tool_calls>'
    assert all(follows(matcher, token) for token in embedded.tokenizer.encode(text, add_bos=False))
    assert matcher.complete
    assert parse_reply(text, thinking=False, tools=True).tool_calls


# What cannot be


def test_without_the_library(embedded: ds4py.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(RequestError, match=r"pip install 'ds4py\[server\]'"):
        json_object(embedded.tokenizer)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: json_schema(t, {"type": "colour"}), "json_schema: "),
        (lambda t: json_schema(t, {"type": "array", "uniqueItems": True}), "json_schema: .*uniqueItems"),
        (lambda t: json_schema(t, {"type": {1}}), "json_schema: "),
        (lambda t: regex(t, "("), "regex: "),
        (lambda t: lark(t, "start: nothing"), "grammar: "),
        (lambda t: tool_calls(t, TOOLS, name="f"), "there is no tool 'f'"),
        (lambda t: tool_calls(t, []), "there are no tools"),
        (
            lambda t: tool_calls(t, [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]),
            "'f'",
        ),
        (lambda t: lark(t, 'start: "\ud800"'), "grammar: .*surrogates"),
        (lambda t: regex(t, "\ud800"), "regex: .*surrogates"),
        (lambda t: with_parameter(t, {}, name="\ud800"), "tools: .*surrogates"),
        (lambda t: with_parameter(t, {}, name='"'), "'f': '\"': the name .* no quotes"),
        (lambda t: with_parameter(t, 5), "'p' is int, wanted a schema"),
        (lambda t: with_parameter(t, {"type": 5}), "'p': type is 5"),
        (lambda t: with_parameter(t, {"enum": 5}), "'p': enum is 5"),
        (lambda t: with_parameter(t, {"enum": []}), r"'p': enum is \[\]"),
        (lambda t: with_parameter(t, {"const": "a</｜DSML｜parameter>"}), "'p': a call cannot hold"),
        (lambda t: with_parameter(t, {}, required=5), "required is int"),
    ],
)
def test_refused_grammars(embedded: ds4py.Engine, make: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        make(embedded.tokenizer)


def with_parameter(tokenizer: Tokenizer, schema: object, *, name: str = "p", required: object = ()) -> object:
    parameters = {"type": "object", "properties": {name: schema}, "required": required or []}
    return tool_calls(tokenizer, [{"type": "function", "function": {"name": "f", "parameters": parameters}}])


def test_a_grammar_that_no_text_keeps_to(session: Session) -> None:
    with pytest.raises(RequestError, match="json_schema: no text keeps to it"):
        run(session, json_schema(session.tokenizer, {"$ref": "#"}), STYLES[0])


def test_a_vocabulary_ends_with_its_tokenizer() -> None:
    tokenizer = ds4py.Engine().tokenizer
    gone = weakref.ref(tokenizer)
    matcher = json_object(tokenizer).start()
    del tokenizer
    assert gone() is not None
    assert matcher.mask() is not None
    del matcher
    gc.collect()
    assert gone() is None


def test_files_without_a_vocabulary() -> None:
    tokenizer = Tokenizer.from_metadata({}, vocab_size=8)
    with pytest.raises(RequestError, match="needs a vocabulary"):
        json_object(tokenizer)
    with pytest.raises(RequestError, match="</think>"):
        AfterThinking(tokenizer, Never())


class Never:
    def start(self) -> Any:
        raise AssertionError


def test_any_object(session: Session) -> None:
    texts: Sequence[str] = [
        text_of(run(session, json_object(session.tokenizer), STYLES[1], sampling=Sampling(seed=seed, top_k=20)))
        for seed in range(3)
        if session.rewind(0) is None
    ]
    assert all(text.lstrip().startswith("{") for text in texts)
