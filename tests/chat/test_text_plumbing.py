"""From ids to events, all of the way: characters, stop strings and tool calls do not depend on how a stream is cut."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splitting import every_split, pieces, random_cuts

from ds4py.chat import Message, ReplyParser, message_of
from ds4py.generation.stop_strings import StopStrings
from ds4py.tokenizer import Tokenizer

D = "｜DSML｜"
CALL = (
    f'\n\n<{D}tool_calls>\n<{D}invoke name="écrire">\n<{D}parameter name="text" string="true">🙂 </{D}x>\n\n'
    f"</{D}parameter>\n</{D}invoke>\n</{D}tool_calls>"
)
ANSWER = f"Où? 🙂</think>Voilà — 北京{CALL}"
STOPS: list[tuple[str, ...]] = [(), ("à —", "🙂\n"), ("</think>V",), ("\n\n",), (f"{D}tool",)]


def reply(tokenizer: Tokenizer, steps: Sequence[Sequence[int]], stops: Sequence[str]) -> tuple[Message, str]:
    """The message that ids make in these steps, and the text that it was made from."""
    decoder, stopping, parser = tokenizer.detokenizer(), StopStrings(stops), ReplyParser(thinking=True, tools=True)
    events, shown = [], ""
    for text in (*(decoder.push(ids) for ids in steps), decoder.flush()):
        shown += (passed := stopping.push(text))
        events += parser.push(passed)
        if stopping.found:
            break
    else:
        shown += (rest := stopping.flush())
        events += parser.push(rest)
    return message_of([*events, *parser.finish()]), shown


@pytest.mark.parametrize("stops", STOPS)
def test_an_answer_in_every_split(real: Tokenizer, stops: tuple[str, ...]) -> None:
    ids = real.encode(ANSWER)
    whole, shown = reply(real, [ids], stops)
    assert ANSWER.startswith(shown) and not any(stop in shown for stop in stops)
    for at in range(len(ids) + 1):
        assert reply(real, [ids[:at], ids[at:]], stops) == (whole, shown)
    assert reply(real, [[token] for token in ids], stops) == (whole, shown)
    if not stops:
        (call,) = whole.tool_calls
        assert (whole.reasoning_content, whole.content) == ("Où? 🙂", "Voilà — 北京")
        assert (call.name, json.loads(call.arguments)) == ("écrire", {"text": f"🙂 </{D}x>\n\n"})


def test_an_answer_byte_by_byte(real: Tokenizer) -> None:
    """Characters that come in pieces of their own."""
    single = {real.token_bytes(token): token for token in range(256 + 64) if len(real.token_bytes(token)) == 1}
    ids = [single[bytes([byte])] for byte in ANSWER.encode()]
    assert reply(real, [[token] for token in ids], ()) == reply(real, [real.encode(ANSWER)], ())


PARTS = ["é", "🙂", "\n", "\n\n", "<", "</", D, "</think>", "<think>", "ab", "abc", CALL, CALL[:40], "x"]


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.sampled_from(PARTS), max_size=12).map("".join), random_cuts(), st.sampled_from([*STOPS, ("ab", "bc")])
)
def test_any_text_in_any_split(real: Tokenizer, text: str, cuts: list[int], stops: tuple[str, ...]) -> None:
    ids = real.encode(text)
    assert reply(real, pieces(ids, cuts), stops) == reply(real, [ids], stops)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(0, 129279), max_size=40), random_cuts(40), st.sampled_from(STOPS))
def test_any_ids_in_any_split(real: Tokenizer, ids: list[int], cuts: list[int], stops: tuple[str, ...]) -> None:
    assert reply(real, pieces(ids, cuts), stops) == reply(real, [ids], stops)


def test_stop_strings_in_any_split() -> None:
    """Texts of few letters, with stop strings that overlap and lie inside each other."""
    rng = random.Random(2)
    for _ in range(500):
        text = "".join(rng.choices("abc", k=rng.randrange(12)))
        stops = ["".join(rng.choices("abc", k=rng.randrange(1, 5))) for _ in range(rng.randrange(1, 4))]
        found = {stopped(parts, stops) for parts in every_split(text)}
        assert found == {stopped([text], stops)}


def stopped(parts: Sequence[str], stops: Sequence[str]) -> tuple[str, bool]:
    stopping, shown = StopStrings(stops), ""
    for part in parts:
        shown += stopping.push(part)
        if stopping.found:
            return shown, True
    return shown + stopping.flush(), False
