"""Text generation: where it ends, what it leaves in the state, and that seeds repeat it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ds4py
from ds4py import Engine, Piece, Sampling
from ds4py.generation.stop_strings import StopStrings

pytestmark = pytest.mark.fast

GREEDY = Sampling(temperature=0)
PROMPT = "def quicksort("


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def ids_of(pieces: list[Piece]) -> list[int]:
    return [token for piece in pieces for token in piece.tokens]


def test_seeds_repeat(tiny: Engine) -> None:
    def run(seed: int) -> list[int]:
        with tiny.session(context=256) as session:
            return ids_of(list(session.generate(PROMPT, max_tokens=20, sampling=Sampling(seed=seed))))

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_the_seed_used_is_reported(tiny: Engine) -> None:
    with tiny.session(context=256) as session:
        first = ids_of(list(session.generate(PROMPT, max_tokens=20)))
        seed = session.stats.seed
    with tiny.session(context=256) as session:
        assert ids_of(list(session.generate(PROMPT, max_tokens=20, sampling=Sampling(seed=seed)))) == first


def test_text_is_the_decode_of_the_ids(tiny: Engine) -> None:
    with tiny.session(context=256) as session:
        pieces = list(session.generate(PROMPT, max_tokens=60, sampling=Sampling(seed=3)))
    assert text_of(pieces) == tiny.tokenizer.decode(ids_of(pieces))
    assert pieces[-1].finish_reason == "length"
    assert {piece.finish_reason for piece in pieces[:-1]} == {None}


def test_continuing_is_as_one_call(tiny: Engine) -> None:
    """The last token of a request joins the state with the next one, however the two are divided."""
    with tiny.session(context=256) as whole, tiny.session(context=256) as parts:
        wanted = ids_of(list(whole.generate(PROMPT, max_tokens=24, sampling=GREEDY)))
        got = ids_of(list(parts.generate(PROMPT, max_tokens=9, sampling=GREEDY)))
        got += ids_of(list(itertools.islice(parts.generate(max_tokens=50, sampling=GREEDY), 7)))
        got += ids_of(list(parts.generate(max_tokens=8, sampling=GREEDY)))
        assert got == wanted
        np.testing.assert_array_equal(whole.logits(), parts.logits())
        assert whole.tokens == parts.tokens == tiny.tokenizer.encode(PROMPT) + wanted


def test_a_full_context_ends_it(tiny: Engine) -> None:
    with tiny.session(context=32) as session:
        pieces = list(session.generate(PROMPT, sampling=Sampling(seed=1, logit_bias={1: -np.inf})))
        assert pieces[-1].finish_reason == "length"
        prompt = len(tiny.tokenizer.encode(PROMPT))
        assert len(ids_of(pieces)) == 32 - prompt
        session.logits()  # the last token has its position
        assert session.position == 32
        assert list(session.generate()) == [Piece("", (), "length")]


def test_end_of_text_stops_and_is_not_shown(tiny: Engine) -> None:
    with tiny.session(context=64) as session:
        pieces = list(session.generate(PROMPT, sampling=Sampling(temperature=0, logit_bias={1: 100.0})))
        assert pieces == [Piece("", (), "stop")]
        assert session.tokens == tiny.tokenizer.encode(PROMPT)


def test_stop_string_across_tokens(tiny: Engine) -> None:
    with tiny.session(context=256) as session:
        wanted = ids_of(list(session.generate(PROMPT, max_tokens=40, sampling=GREEDY)))
    texts = [tiny.tokenizer.decode([token]) for token in wanted]
    at = next(i for i in range(10, 38) if all(t.isascii() and len(t) >= 2 for t in texts[i : i + 2]))
    stop = texts[at][-1] + texts[at + 1][0]
    full = tiny.tokenizer.decode(wanted)
    with tiny.session(context=256) as session:
        pieces = list(session.generate(PROMPT, max_tokens=40, sampling=GREEDY, stop=[stop]))
        shown = text_of(pieces)
        assert pieces[-1].finish_reason == "stop"
        assert shown == full[: full.index(stop)]
        # Nothing beyond what was shown stays: the state is a prefix of it, short by less than one token.
        kept = session.tokens[len(tiny.tokenizer.encode(PROMPT)) :]
        assert shown.startswith(tiny.tokenizer.decode(kept))
        assert kept == wanted[: len(kept)]
        assert len(tiny.tokenizer.decode(wanted[: len(kept) + 1])) > len(shown)
        session.logits()


def test_zero_tokens(tiny: Engine) -> None:
    with tiny.session(context=64) as session:
        assert list(session.generate(PROMPT, max_tokens=0)) == [Piece("", (), "length")]


def test_wrong_requests(tiny: Engine) -> None:
    with tiny.session(context=64) as session:
        with pytest.raises(ds4py.RequestError, match="prompt is empty"):
            session.generate([])
        with pytest.raises(ds4py.RequestError, match="max_tokens is -1"):
            session.generate(PROMPT, max_tokens=-1)
        with pytest.raises(ds4py.RequestError, match="sequence of strings"):
            session.generate(PROMPT, stop="abc")
        with pytest.raises(ds4py.RequestError, match="do not fit"):
            session.generate(PROMPT * 20)
        assert session.position == 0


def test_cancel_between_pieces(tiny: Engine) -> None:
    with tiny.session(context=256) as session:
        stream = session.generate(PROMPT, max_tokens=40, sampling=GREEDY)
        first = [next(stream) for _ in range(3)]
        session.cancel()
        with pytest.raises(ds4py.Cancelled):
            next(stream)
        rest = list(session.generate(max_tokens=5, sampling=GREEDY))
    with tiny.session(context=256) as session:
        assert ids_of(list(session.generate(PROMPT, max_tokens=8, sampling=GREEDY))) == ids_of(first + rest)


def test_the_embedded_model() -> None:
    with ds4py.Engine() as engine, engine.session() as session:
        assert engine.embedded
        assert list(session.generate(PROMPT, max_tokens=4))


def first_stop(text: str, stops: list[str]) -> int:
    """Where the stop string begins that is complete first; of those that end there, the longest."""
    for end in range(len(text) + 1):
        if found := [stop for stop in stops if text[:end].endswith(stop)]:
            return end - max(map(len, found))
    return len(text)


@pytest.mark.parametrize("stops", [["ab"], ["abc", "bd"], ["aab"], [], ["bc", "abcd"], ["c", "bc"]])
def test_stop_strings_in_every_split(stops: list[str]) -> None:
    for text in ("xxabyy", "aaab", "abd", "zzz", "ababcab", "xabcd", ""):
        at = first_stop(text, stops)
        for cuts in itertools.product([False, True], repeat=max(len(text) - 1, 0)):
            filter_ = StopStrings(stops)
            shown, piece = "", ""
            for i, char in enumerate(text):
                piece += char
                if i == len(text) - 1 or cuts[i]:
                    shown, piece = shown + filter_.push(piece), ""
                if filter_.found:
                    break
            if not filter_.found:
                shown += filter_.flush()
            assert bool(filter_.found) == (at < len(text))
            assert shown == text[:at]
