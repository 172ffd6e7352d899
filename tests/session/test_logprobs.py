"""Log probabilities of what was generated: the target's, whoever proposed it and however the text ends."""

from __future__ import annotations

import numpy as np
import pytest
from generating import CONTINUATION, PROMPT, ids_of, oracle

import ds4py
from ds4py import Engine, Piece, Sampling, Session, _native
from ds4py.sampling.logprobs import TokenLogprobs, logprobs

pytestmark = pytest.mark.fast

GREEDY = Sampling(temperature=0)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    rows = logits.astype(np.float64)
    rows = rows - rows.max(axis=-1, keepdims=True)
    return np.asarray(rows - np.log(np.exp(rows).sum(axis=-1, keepdims=True)))


def told(pieces: list[Piece]) -> list[TokenLogprobs]:
    return [each for piece in pieces for each in piece.logprobs or ()]


@pytest.mark.parametrize("top", [0, 1, 5, 300])
def test_rows_are_log_softmax_in_descending_order(top: int) -> None:
    logits = np.random.default_rng(1).normal(size=(4, 300)).round(1).astype(np.float32) * 9  # rounded: with ties
    tokens = [0, 7, 299, 12]
    wanted = log_softmax(logits)
    for row, found in enumerate(logprobs(logits, tokens, top)):
        assert found.token == tokens[row]
        assert found.logprob == pytest.approx(wanted[row, tokens[row]], abs=1e-6)
        order = sorted(range(300), key=lambda i, row=row: (-logits[row, i], i))[:top]  # type: ignore[misc]
        assert [token for token, _ in found.top] == order
        np.testing.assert_allclose([value for _, value in found.top], wanted[row, order], atol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    logits = np.zeros((2, 8), np.float32)
    for tokens, top, message in (
        ([1, 2, 3], 0, "16 logits for 3 tokens"),
        ([], 0, "for 0 tokens"),
        ([8], 0, "token 8 is not in"),
        ([1], 9, "9 alternatives"),
        ([1], -1, "-1 alternatives"),
    ):
        with pytest.raises(ds4py.RequestError, match=message):
            logprobs(logits, tokens, top)
    logits[1, 3] = np.nan
    with pytest.raises(ds4py.BackendError, match="token 3"):
        logprobs(logits, [1, 1], 0)


@pytest.mark.parametrize(("right", "wrong", "width"), [(0, 0, 0), (15, 0, 4), (2, 3, 5), (15, 0, 15)])
def test_they_are_the_target_s_at_every_width(prompted: Session, right: int, wrong: int, width: int) -> None:
    draft = oracle(right, wrong) if width else "off"
    pieces = list(prompted.generate(max_tokens=30, sampling=GREEDY, draft=draft, width=width, logprobs=3))
    ids = ids_of(pieces)
    assert ids == CONTINUATION[:30]
    assert [len(piece.logprobs or ()) for piece in pieces] == [len(piece.tokens) for piece in pieces]
    prompted.rewind(len(PROMPT) - 1)
    wanted = log_softmax(prompted.evaluate([PROMPT[-1], *ids[:-1]]))
    for row, found in zip(wanted, told(pieces), strict=True):
        assert found.logprob == pytest.approx(row[found.token], abs=1e-4)
        assert [token for token, _ in found.top] == list(np.argsort(-row, kind="stable")[:3])
        assert found.top[0][0] == found.token


def test_a_policy_changes_no_logprob(prompted: Session) -> None:
    """Bias, temperature and cuts decide what is drawn, not what the target makes of it."""
    bent = Sampling(temperature=0.3, top_k=4, seed=2, logit_bias={5: 50.0})
    ((piece,),) = ([*prompted.generate(max_tokens=1, sampling=bent, logprobs=0)],)
    prompted.rewind(len(PROMPT))
    assert piece.tokens == (5,)
    assert told([piece])[0].logprob == pytest.approx(log_softmax(prompted.logits())[5], abs=1e-6)
    assert told([piece])[0].top == ()


def test_they_end_where_the_text_does(prompted: Session) -> None:
    """A stop string or an end token in the middle of a block: one for each token that is given out, none after it."""
    text = prompted.tokenizer.decode(CONTINUATION[:8])
    stop = text[len(prompted.tokenizer.decode(CONTINUATION[:5])) :]
    options = {"sampling": GREEDY, "draft": oracle(), "width": 15, "logprobs": 0}
    pieces = list(prompted.generate(stop=[stop], **options))  # type: ignore[arg-type]
    assert pieces[-1].finish_reason == "stop"
    assert [each.token for each in told(pieces)] == ids_of(pieces) == CONTINUATION[:8]
    prompted.rewind(len(PROMPT))
    assert told(list(prompted.generate(max_tokens=0, logprobs=0))) == []


def test_none_are_told_unasked(prompted: Session) -> None:
    assert {piece.logprobs for piece in prompted.generate(max_tokens=5, sampling=GREEDY)} == {None}


def test_wrong_numbers_are_refused_before_anything_runs(tiny: Engine) -> None:
    with tiny.session(context=64) as session:
        for top in (-1, 513):
            with pytest.raises(ds4py.RequestError, match=f"logprobs is {top}, wanted 0 to the vocabulary of 512"):
                session.generate([1, 2], logprobs=top)
        assert session.position == 0


def test_nothing_is_drawn_for_them(prompted: Session) -> None:
    def run(top: int | None) -> list[int]:
        prompted.rewind(len(PROMPT))
        return ids_of(list(prompted.generate(max_tokens=12, sampling=Sampling(seed=5), draft="off", logprobs=top)))

    assert run(None) == run(4)
    assert _native.Rng(5).counter == 0
