"""Generation within a grammar: exact inside verify blocks, whoever proposes and however it is judged."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from chi_square import Law, bound, chi_square
from generating import GREEDY, ids_of

from ds4py import Sampling, Session, _native
from ds4py.grammar.base import Guide, Mask, packed
from ds4py.speculative import Draft, Drafter, DraftRequest, Loop, ScriptedDrafter

RULES = ["token", "match", "block"]
VOCAB, ANCHOR, STOP = 512, 77, 1
POLICY = Sampling(temperature=3.0, top_k=3)


class Listed:
    """A grammar of some texts of one length."""

    def __init__(self, texts: Sequence[tuple[int, ...]]) -> None:
        self.texts = texts

    def start(self) -> ListedMatcher:
        return ListedMatcher(self.texts)


class ListedMatcher:
    def __init__(self, texts: Sequence[tuple[int, ...]]) -> None:
        self._texts = texts
        self.tokens: list[int] = []

    def _following(self) -> list[int]:
        n = len(self.tokens)
        return [STOP] if self.complete else sorted({text[n] for text in self._texts if list(text[:n]) == self.tokens})

    def mask(self) -> Mask:
        return packed(self._following(), VOCAB)

    def advance(self, token: int) -> None:
        assert token in self._following()
        self.tokens.append(token)

    def rollback(self, count: int) -> None:
        del self.tokens[len(self.tokens) - count :]

    @property
    def complete(self) -> bool:
        return len(self.tokens) >= len(self._texts[0])


TEXTS = [text for text in itertools.product((3, 50, 200, 301), (8, 50, 400), (3, 9)) if sum(text) % 3]
"""After each beginning others are allowed."""


def law(session: Session, texts: Sequence[tuple[int, ...]]) -> Law:
    """The probability of each text by the target's own logits: the policy over what the grammar allows."""
    start, sampler = session.position, _native.Sampler(POLICY.policy())
    found = {}
    for text in texts:
        matcher, chance = Listed(texts).start(), 1.0
        session.rewind(start)
        rows = session.evaluate([ANCHOR, *text])
        for row, token in zip(rows, text, strict=False):
            allowed = np.unpackbits(matcher.mask(), bitorder="little").astype(bool)
            chance *= sampler.distribution(np.where(allowed, row, -np.inf).astype(np.float32))[token]
            matcher.advance(token)
        if chance:
            found[text] = float(chance)
    session.rewind(start)
    return found


def careless(seed: int = 4) -> Drafter:
    """Draws two proposals from tokens that are allowed in some place and one that never is."""
    rng = np.random.default_rng(seed)
    ids = np.array([3, 8, 9, 50, 200, 301, 400, 11], np.int32)
    q = np.array([0.05, 0.05, 0.05, 0.3, 0.05, 0.05, 0.05, 0.4], np.float32)

    def propose(history: npt.NDArray[np.int32]) -> Draft:
        tokens = np.array([ids[_native.draw(q, rng.random())] for _ in range(2)], np.int32)
        return Draft(tokens, np.stack([q, q]), np.stack([ids, ids]))

    return ScriptedDrafter(propose)


def texts(session: Session, drafter: Drafter, rule: str, count: int) -> Counter[tuple[int, ...]]:
    start, found = session.position, Counter[tuple[int, ...]]()
    for seed in range(count):
        session.rewind(start)
        session.anchor = ANCHOR
        sampling = Sampling(temperature=POLICY.temperature, top_k=POLICY.top_k, seed=seed)
        pieces = list(
            session.generate(sampling=sampling, draft=drafter, width=15, accept=rule, constraint=Listed(TEXTS))  # type: ignore[arg-type]
        )
        assert pieces[-1].finish_reason == "stop"
        found[tuple(ids_of(pieces))] += 1
    session.rewind(start)
    return found


@pytest.mark.parametrize("rule", RULES)
def test_sampled_texts_follow_the_law(prompted: Session, rule: str) -> None:
    wanted = law(prompted, TEXTS)
    assert sum(wanted.values()) == pytest.approx(1, abs=1e-5)
    found = texts(prompted, careless(), rule, 600)
    assert set(found) <= set(wanted)
    statistic, freedom = chi_square(found, wanted)
    assert freedom >= 6
    assert statistic < bound(freedom)


def test_leaving_out_the_forbidden_proposal_is_seen(prompted: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows it would then be drawn as if nothing had been proposed: not from the residual."""

    def shortened(self: Loop, draft: Draft) -> tuple[Draft, Draft]:
        guide = self._request.guide
        assert guide
        allowed = draft.first(guide.allowed(draft.tokens))
        return allowed, allowed

    wanted = law(prompted, TEXTS)
    monkeypatch.setattr(Loop, "_within_grammar", shortened)
    statistic, freedom = chi_square(texts(prompted, careless(), "token", 600), wanted)
    assert statistic > bound(freedom)


def greedy(session: Session, constraint: Listed) -> list[int]:
    """The likeliest allowed token, one after the other, by hand."""
    matcher = constraint.start()
    while not matcher.complete:
        allowed = np.unpackbits(matcher.mask(), bitorder="little").astype(bool)
        token = int(np.argmax(np.where(allowed, session.logits(), -np.inf)))
        matcher.advance(token)
        session.prefill([token])
    return matcher.tokens


LONG = Listed([text for text in itertools.product(range(20, 320, 30), repeat=3) if sum(text) % 7 != 1])


@pytest.mark.parametrize("draft", ["off", "dspark", "lookup", "auto", careless()])
@pytest.mark.parametrize("rule", RULES)
def test_greedy_texts_are_those_of_plain_decoding(prompted: Session, draft: str, rule: str) -> None:
    start = prompted.position
    wanted = greedy(prompted, LONG)
    prompted.rewind(start)
    options = {"sampling": GREEDY, "draft": draft, "width": 5, "accept": rule, "constraint": LONG}
    pieces = list(prompted.generate(**options))  # type: ignore[arg-type]
    assert ids_of(pieces) == wanted
    assert [*prompted.tokens[start:], prompted.anchor] == wanted
    assert pieces[-1].finish_reason == "stop"


def test_no_row_is_computed_behind_a_forbidden_proposal(prompted: Session) -> None:
    """The first is allowed, the second is not: two rows are verified, for eight proposals."""
    prompted.anchor = ANCHOR
    drafter = ScriptedDrafter(lambda history: [20, 21, 22, 23, 24, 25, 26, 27])
    list(prompted.generate(max_tokens=9, sampling=GREEDY, draft=drafter, width=8, constraint=LONG))
    assert prompted.stats.speculation.cycles[0].width == 1


@pytest.mark.parametrize("seed", range(5))
def test_limits_end_before_the_grammar_does(prompted: Session, seed: int) -> None:
    pieces = list(prompted.generate(max_tokens=2, sampling=Sampling(seed=seed), constraint=LONG))
    assert (len(ids_of(pieces)), pieces[-1].finish_reason) == (2, "length")


def test_a_grammar_needs_the_rows_here() -> None:
    """Also where a device could judge the proposals by itself."""
    assert not DraftRequest.of(GREEDY).needs_logits
    assert DraftRequest.of(GREEDY, LONG).needs_logits


def test_a_guide_leaves_the_rows_as_they_are() -> None:
    guide = Guide(Listed(TEXTS).start())
    assert guide.allowed(np.array([3, 8, 1], np.int32)) == 2
    logits = np.zeros((3, VOCAB), np.float32)
    rows = guide.rows(logits, 3)
    assert rows.shape == (4, VOCAB) and not logits.any()
    assert [np.flatnonzero(row == 0).tolist() for row in rows[:3]] == [[3, 50, 200, 301], [8, 50, 400], [3, 9]]
