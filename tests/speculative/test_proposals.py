"""Sampled drafts: what q is, and that proposals are drawn from it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from drafting import (
    SAME,
    VOCAB,
    Draft,
    assert_same,
    draft,
    golden,
    log_softmax,
    open_session,
    prompt,
    relative_error,
    sampler,
)
from gguf_tools import DRAFTER
from reference_drafter import Block, Chain, ReferenceDrafter
from reference_sampling import distribution

from ds4py import _native

LENGTH, ANCHOR = 70, 9  # no two of its widths draft the same
BLOCK = 5
BOUND = 2e-5  # of probabilities: what the errors of a few logits make of them


@pytest.fixture(scope="module")
def session() -> _native.Session:
    return open_session(prompt(LENGTH))


@pytest.fixture(scope="module")
def reference() -> tuple[ReferenceDrafter, Block]:
    drafter = ReferenceDrafter.read(DRAFTER)
    return drafter, drafter.stages_of(golden("target")["dspark_features"][:LENGTH], ANCHOR, LENGTH)


def sampled(session: _native.Session, seed: int, draft_vocab: int = 0, **policy: Any) -> Draft:
    return draft(session, ANCHOR, sampler=sampler(**policy), rng=_native.Rng(seed), draft_vocab=draft_vocab)


def chain(reference: tuple[ReferenceDrafter, Block], found: Draft) -> Chain:
    """What the reference makes of the drawn tokens."""
    return reference[0].chain(reference[1], ANCHOR, found.tokens)


@pytest.mark.parametrize("seed", range(4))
def test_q_follows_the_drawn_tokens(
    session: _native.Session, reference: tuple[ReferenceDrafter, Block], seed: int
) -> None:
    found = sampled(session, seed)
    wanted = chain(reference, found)
    assert found.ids is None
    assert relative_error(np.log(found.q), log_softmax(wanted.logits)) <= SAME
    np.testing.assert_allclose(found.confidence, wanted.confidence, atol=SAME)
    np.testing.assert_allclose(found.q.sum(1), 1, atol=1e-5)


def drawn(found: Draft, seed: int) -> list[int]:
    """The tokens that the generator's numbers fall on in q."""
    rng = _native.Rng(seed)
    columns = [_native.draw(row, rng.uniform()) for row in found.q]
    return columns if found.ids is None else [int(ids[c]) for ids, c in zip(found.ids, columns, strict=True)]


@pytest.mark.parametrize("draft_vocab", [0, 1, 40])
@pytest.mark.parametrize("policy", [{}, {"temperature": 2.5}, {"top_k": 3}], ids=str)
def test_proposals_are_drawn_from_q(session: _native.Session, policy: dict[str, Any], draft_vocab: int) -> None:
    blocks = set()
    for seed in range(6):
        found = sampled(session, seed, draft_vocab, **policy)
        assert list(found.tokens) == drawn(found, seed)
        assert (found.q[np.arange(BLOCK), columns(found)] > 0).all()
        assert_equal(sampled(session, seed, draft_vocab, **policy), found)
        blocks.add(tuple(found.tokens))
    assert len(blocks) == 1 if draft_vocab == 1 else len(blocks) >= 3


def columns(found: Draft) -> np.ndarray:
    """Where in q the tokens are."""
    return found.tokens if found.ids is None else (found.ids == found.tokens[:, None]).argmax(1)


def assert_equal(found: Draft, wanted: Draft) -> None:
    for name in ("tokens", "confidence", "q", "hidden", "base"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_the_generator_gives_one_number_a_position(session: _native.Session) -> None:
    rng = _native.Rng(3)
    for _ in range(2):
        draft(session, ANCHOR, sampler=sampler(), rng=rng)
    assert rng.counter == 2 * BLOCK


def test_a_proposal_moves_what_comes_after_it_alone(session: _native.Session) -> None:
    """Of two drafts, rows up to the first token in which they differ are the same bits, and the next differ."""
    positions = set()
    drafts = [sampled(session, seed, temperature=0.5) for seed in range(12)]
    for one, other in combinations(drafts, 2):
        different = np.flatnonzero(one.tokens != other.tokens)
        if not len(different) or different[0] == BLOCK - 1:
            continue
        same = int(different[0]) + 1  # rows that no differing token comes before
        np.testing.assert_array_equal(one.q[:same], other.q[:same])
        np.testing.assert_array_equal(one.confidence[:same], other.confidence[:same])
        assert np.abs(one.q[same] - other.q[same]).max() > 1e-3
        assert one.confidence[same] != other.confidence[same]
        positions.add(same)
    assert len(positions) >= 2


POLICIES = [
    {"temperature": 0.6},
    {"temperature": 2.0, "top_k": 7},
    {"temperature": 1.5, "top_p": 0.8},
    {"temperature": 1.5, "min_p": 0.05},
    {"temperature": 1.2, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_policy_shapes_q(
    session: _native.Session, reference: tuple[ReferenceDrafter, Block], policy: dict[str, Any]
) -> None:
    found = sampled(session, 2, **policy)
    for q, logits in zip(found.q, chain(reference, found).logits, strict=True):
        np.testing.assert_allclose(q, distribution(logits, **policy), atol=BOUND)


def test_penalties_look_at_everything_up_to_the_row(
    session: _native.Session, reference: tuple[ReferenceDrafter, Block]
) -> None:
    """The tokens in the state, the anchor, and the proposals before the row."""
    common = {"temperature": 3.0, "logit_bias": {13: 6.0, 40: -3.0}}
    penalties = {"repetition": 1.4, "presence": 0.5, "frequency": 0.6, "last_n": 6}
    native = {"penalty_last_n" if name == "last_n" else f"{name}_penalty": value for name, value in penalties.items()}
    found = sampled(session, 5, **common, **native)
    history = [*session.tokens, ANCHOR, *found.tokens]

    def wanted(row: int, end: int) -> np.ndarray:
        logits = chain(reference, found).logits[row]
        return distribution(logits, history[:end], temperature=3.0, bias=common["logit_bias"], **penalties)

    for row in range(BLOCK):
        end = LENGTH + 1 + row
        np.testing.assert_allclose(found.q[row], wanted(row, end), atol=BOUND)
        assert np.abs(wanted(row, end) - wanted(row, end - 1)).max() > 10 * BOUND


@pytest.mark.parametrize("draft_vocab", [0, 30])
def test_a_greedy_policy_proposes_the_arg_max(session: _native.Session, draft_vocab: int) -> None:
    found, plain = sampled(session, 1, draft_vocab, temperature=0), draft(session, ANCHOR, draft_vocab=draft_vocab)
    assert_same(found, plain, bound=0)
    assert plain.q is None
    assert (found.q.max(1) == 1).all()
    assert (found.q.sum(1) == 1).all()


@pytest.mark.parametrize("width", [2, 17, 100, VOCAB - 1])
def test_a_draft_vocabulary_is_the_likeliest_by_base_logits(
    session: _native.Session, reference: tuple[ReferenceDrafter, Block], width: int
) -> None:
    """Its q is the whole vocabulary's on the listed tokens alone."""
    found = sampled(session, 4, width)
    logits = chain(reference, found).logits
    assert found.ids.shape == found.q.shape == (BLOCK, width)
    for row, ids in enumerate(found.ids):
        assert set(ids) == set(np.argsort(-reference[1].base[row])[:width])
        np.testing.assert_allclose(found.q[row], np.exp(log_softmax(logits[row, ids])), atol=BOUND)
    np.testing.assert_allclose(found.confidence, chain(reference, found).confidence, atol=SAME)


def test_the_arg_max_of_a_draft_vocabulary(session: _native.Session, reference: tuple[ReferenceDrafter, Block]) -> None:
    """Not always that of the vocabulary: the bias may favour a token that is not listed."""
    whole = draft(session, ANCHOR)
    blocks = []
    for width in (1, 3, 10, 60, VOCAB, VOCAB + 1):
        found = draft(session, ANCHOR, draft_vocab=width)
        logits = chain(reference, found).logits
        for row, base in enumerate(reference[1].base):
            listed = np.argsort(-base)[:width]
            assert found.tokens[row] == listed[logits[row, listed].argmax()]
        blocks.append(tuple(found.tokens))
    assert blocks[-1] == blocks[-2] == tuple(whole.tokens)
    assert len(set(blocks)) == 5


def test_penalties_on_a_draft_vocabulary(session: _native.Session, reference: tuple[ReferenceDrafter, Block]) -> None:
    found = sampled(session, 5, 60, repetition_penalty=1.4, logit_bias={13: 6.0})
    history = [*session.tokens, ANCHOR, *found.tokens]
    for row, (ids, logits) in enumerate(zip(found.ids, chain(reference, found).logits, strict=True)):
        unlisted = np.setdiff1d(np.arange(VOCAB), ids)
        kept = logits.copy()
        kept[unlisted] = -np.inf
        bias = {13: 6.0} if 13 in ids else {}
        wanted = distribution(kept, history[: LENGTH + 1 + row], repetition=1.4, bias=bias)
        np.testing.assert_allclose(found.q[row], wanted[ids], atol=BOUND)


def test_a_failure_of_the_sampler_ends_the_draft_alone() -> None:
    session = open_session(prompt(LENGTH))
    nothing = sampler(logit_bias=dict.fromkeys(range(VOCAB), -np.inf))
    with pytest.raises(_native.RequestError, match="at least one finite"):
        session.draft(ANCHOR, sampler=nothing, rng=_native.Rng(1))
    with pytest.raises(_native.RequestError, match="nothing has been drafted"):
        session.diagnostics.draft_trace()
    assert_equal(sampled(session, 1), sampled(open_session(prompt(LENGTH)), 1))


def test_wrong_options(session: _native.Session) -> None:
    with pytest.raises(_native.RequestError, match="draft_vocab is -1"):
        session.draft(ANCHOR, draft_vocab=-1)
    with pytest.raises(_native.RequestError, match="random generator"):
        session.draft(ANCHOR, sampler=sampler())
