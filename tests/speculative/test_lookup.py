"""Prompt lookup: what it proposes, against a search of the whole text, and that it follows the session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from device import DEVICE
from paths import GOLDEN

import ds4py
from ds4py import Engine, Sampling
from ds4py.speculative import DraftRequest, PromptLookupDrafter
from ds4py.speculative.lookup import Index

pytestmark = [pytest.mark.fast, pytest.mark.on_device]

GREEDY = Sampling(temperature=0)
REQUEST = DraftRequest.of(GREEDY)
ROUND = [5, 6, 7, 8, 9, 10, 11, 12]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """The tiny target, without a drafter."""
    with Engine(GOLDEN / "tiny-target-f32.gguf", device=DEVICE, threads=1) as engine:
        yield engine


def ids(tokens: Sequence[int]) -> np.ndarray:
    return np.array(tokens, dtype=np.int32)


def search(text: list[int], length: int) -> list[int]:
    """What the index should find, by trying every place: the definition."""
    for size in (4, 3, 2):
        for end in range(len(text) - 1, size - 1, -1):
            if size < len(text) and text[end - size : end] == text[-size:]:
                copied = list(text)
                for at in range(end, end + length):
                    copied.append(copied[at])
                return copied[len(text) :]
    return []


def continuation(index: Index, length: int) -> list[int]:
    found = index.continuation(length)
    return found[0].tolist() if found else []


@pytest.mark.parametrize("vocabulary", [2, 3, 12])
def test_against_a_search_of_the_whole_text(vocabulary: int) -> None:
    """Texts that grow, shrink, and change behind any point."""
    rng = np.random.default_rng(vocabulary)
    index, text = Index(), []
    lengths = set()
    for _ in range(600):
        if rng.random() < 0.2:
            del text[int(rng.integers(0, len(text) + 1)) :]
        text += rng.integers(0, vocabulary, rng.integers(0, 9)).tolist()
        index.follow(ids(text))
        found = continuation(index, 6)
        assert found == search(text, 6)
        lengths.add(len(found))
    assert lengths == {0, 6}


def test_what_was_taken_back_is_not_found() -> None:
    index = Index()
    index.follow(ids([1, 2, 3, 4, 1, 2, 9, 1, 2]))
    assert continuation(index, 2) == [9, 1]
    index.follow(ids([1, 2, 3, 4, 1, 2]))
    assert continuation(index, 2) == [3, 4]
    index.follow(ids([1, 2]))
    assert continuation(index, 2) == []


def test_the_longest_match_counts_before_the_latest() -> None:
    index = Index()
    index.follow(ids([1, 2, 3, 4, 50, 9, 3, 4, 60, 1, 2, 3, 4]))
    assert continuation(index, 1) == [50]
    index.follow(ids([7, 2, 3, 4, 50, 9, 3, 4, 60, 3, 4]))
    assert continuation(index, 1) == [60]


def test_a_period_is_continued() -> None:
    index = Index()
    index.follow(ids([9, 1, 2, 3, 1, 2, 3, 1]))
    assert continuation(index, 7) == [2, 3, 1, 2, 3, 1, 2]


def test_following_a_long_text_adds_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    from ds4py.speculative import lookup

    looked_at: list[int] = []
    add = lookup.Grams.add

    def counted(self: lookup.Grams, length: int, token: int) -> None:
        add(self, length, token)
        looked_at.append(length)

    monkeypatch.setattr(lookup.Grams, "add", counted)
    text = np.random.default_rng(0).integers(0, 500, 5000).astype(np.int32)
    index = Index()
    index.follow(text[:4990])
    looked_at.clear()
    for end in range(4991, 5001):
        index.follow(text[:end])
    assert looked_at == [length for length in range(4990, 5000) for _ in lookup.SIZES]


def test_proposals_of_a_session(engine: Engine) -> None:
    drafter = PromptLookupDrafter(length=4)
    with engine.session(context=128) as session:
        session.prefill([*ROUND, 3, 4, *ROUND[:2]])
        session.anchor = ROUND[2]  # belongs to the text, though it is not in the state
        draft = drafter.propose(session, REQUEST, 9)
        assert draft is not None and draft.tokens.tolist() == ROUND[3:7]
        assert draft.q_probs.tolist() == [[1.0]] * 4
        narrow = drafter.propose(session, REQUEST, 2)
        assert narrow is not None and narrow.tokens.tolist() == ROUND[3:5]
        session.rewind(len(ROUND) + 1)
        session.anchor = 100
        assert drafter.propose(session, REQUEST, 9) is None


def test_one_drafter_for_several_sessions(engine: Engine) -> None:
    drafter = PromptLookupDrafter()
    with engine.session(context=128) as a, engine.session(context=128) as b:
        a.prefill([*ROUND, 5])
        a.anchor = 6
        b.prefill([20, 21, 22, 23, 20])
        b.anchor = 21
        for _ in range(2):
            first, second = (drafter.propose(session, REQUEST, 2) for session in (a, b))
            assert first is not None and second is not None
            assert (first.tokens.tolist(), second.tokens.tolist()) == ([7, 8], [22, 23])


def test_text_is_that_of_plain_decoding(engine: Engine) -> None:
    """Over several requests and rewinds of one session, whose own drafter is kept."""
    accepted = 0
    with engine.session(context=512) as session:
        for start, budget in ((72, 30), (30, 40), (1, 60), (64, 30)):
            found = []
            for draft in ("off", "lookup"):
                session.rewind(0)
                session.prefill(ROUND * 9)
                session.rewind(start)
                pieces = session.generate(max_tokens=budget, sampling=GREEDY, draft=draft, width=15)
                found.append([token for piece in pieces for token in piece.tokens])
            assert found[0] == found[1]
            accepted += session.stats.speculation.accepted
    assert accepted > 20


@pytest.mark.parametrize("length", [0, 16])
def test_wrong_lengths(length: int) -> None:
    with pytest.raises(ds4py.RequestError, match="wanted 1 to 15"):
        PromptLookupDrafter(length)


def test_a_text_that_was_changed_behind_its_end_is_read_anew(engine: Engine) -> None:
    """As long as before and with the same last token, but not the same text."""
    drafter = PromptLookupDrafter(length=2)
    with engine.session(context=128) as session:
        for between, wanted in ((60, [60, 3]), (70, [70, 3])):
            session.rewind(0)
            session.prefill([1, 2, between, 3, 50, 1])
            session.anchor = 2
            draft = drafter.propose(session, REQUEST, 9)
            assert draft is not None and draft.tokens.tolist() == wanted
            session.anchor = 90  # instead of the last one
            assert drafter.propose(session, REQUEST, 9) is None


def test_an_interrupted_index_is_made_anew(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from ds4py.speculative import lookup

    drafter = PromptLookupDrafter(length=2)
    with engine.session(context=128) as session:
        session.prefill([*ROUND, *ROUND])
        session.anchor = ROUND[0]
        assert drafter.propose(session, REQUEST, 2) is not None
        for calls in range(3):
            session.rewind(len(ROUND) + 3)
            session.anchor = 90
            left = iter(range(calls))

            def interrupted(self: lookup.Grams, *_: object, left: Iterator[int] = left) -> None:
                if next(left, None) is None:
                    raise KeyboardInterrupt

            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(lookup.Grams, "add", interrupted)
                drafter.propose(session, REQUEST, 2)
            session.anchor = ROUND[3]
            draft = drafter.propose(session, REQUEST, 2)
            assert draft is not None and draft.tokens.tolist() == ROUND[4:6]


def test_a_text_that_lost_its_anchor(engine: Engine) -> None:
    drafter = PromptLookupDrafter(length=2)
    with engine.session(context=128) as session:
        session.prefill([*ROUND, *ROUND])
        session.anchor = ROUND[0]
        assert drafter.propose(session, REQUEST, 2) is not None
        session.anchor = None
        draft = drafter.propose(session, REQUEST, 2)
        assert draft is not None and draft.tokens.tolist() == ROUND[:2]
