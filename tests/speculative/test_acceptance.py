"""Native acceptance against the NumPy rules, decision for decision, its corners and errors, and q over candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import reference_sampling

from ds4py import _native
from ds4py.errors import BackendError, RequestError
from ds4py.sampling.policy import Sampling
from ds4py.speculative import accept
from ds4py.speculative.reference import RULES, Uniforms

pytestmark = pytest.mark.fast

SEEDS = range(400)
PLAIN = Sampling()
GREEDY = Sampling(temperature=0)


@dataclass
class Draft:
    tokens: np.ndarray
    q_probs: np.ndarray
    q_ids: np.ndarray | None = None


def float32(values):
    return np.asarray(values, dtype=np.float32)


def ids(values):
    return np.asarray(values, dtype=np.int32)


def logits_of(probabilities):
    with np.errstate(divide="ignore"):
        return float32(np.log(probabilities))


def dense(draft, vocab):
    """The draft with q over the whole vocabulary."""
    q = np.zeros((len(draft.tokens), vocab), dtype=np.float32)
    np.put_along_axis(q, draft.q_ids, draft.q_probs, axis=1)
    return Draft(draft.tokens, q)


def accept_results(rule, logits, draft, sampling=PLAIN, seeds=SEEDS):
    """What comes out for one seed after the other."""
    return [accept(float32(logits), draft, sampling, _native.Rng(seed), rule=rule) for seed in seeds]


@dataclass
class Case:
    """A random verify: logits, a draft over a draft vocabulary of random tokens, a policy and a history."""

    logits: np.ndarray
    draft: Draft
    sampling: Sampling
    history: np.ndarray

    @classmethod
    def random(cls, seed, vocab):
        generator = np.random.default_rng((seed, vocab))
        k = int(generator.integers(0, 6))
        logits = float32(generator.normal(size=(k + 1, vocab)) * generator.choice([1, 4]))
        history = ids(generator.integers(0, vocab, size=12))
        sampling = Sampling(
            temperature=float(generator.choice([0.5, 1.0, 1.4])),
            top_k=int(generator.choice([0, 5])),
            top_p=float(generator.choice([1.0, 0.9])),
            presence_penalty=float(generator.choice([0.0, 0.7])),
            logit_bias={int(history[0]): 0.5} if seed % 2 else None,
        )
        return cls(logits, cls.drafted(logits, sampling, generator), sampling, history)

    @staticmethod
    def drafted(logits, sampling, generator):
        """Proposals drawn from q over each row's likelier half, near to the target's logits."""
        sampler = _native.Sampler(sampling.policy())
        k, width = len(logits) - 1, max(1, logits.shape[1] // 2)
        listed = ids(np.argsort(-logits[:k], axis=1)[:, :width]).reshape(k, width)
        near = float32(logits + generator.normal(size=logits.shape) * 0.5)
        q = float32([sampler.distribution(near[i][listed[i]], ids=listed[i]) for i in range(k)]).reshape(k, width)
        drawn = [_native.draw(row, generator.random()) for row in q]
        return Draft(ids([listed[i][entry] for i, entry in enumerate(drawn)]), q, listed)

    def rows(self):
        """The target's distributions, each with the proposals before it in the history."""
        sampler = _native.Sampler(self.sampling.policy())
        seen = [ids([*self.history, *self.draft.tokens[:i]]) for i in range(len(self.logits))]
        return np.stack([sampler.distribution(row, tokens) for row, tokens in zip(self.logits, seen, strict=True)])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("vocab", [1, 2, 9, 40, 600])
def test_every_decision_is_the_references(rule, vocab):
    counts = set()
    for seed in SEEDS:
        case = Case.random(seed, vocab)
        native, numpy = _native.Rng(seed), _native.Rng(seed)
        found = accept(case.logits, case.draft, case.sampling, native, history=case.history, rule=rule)
        p, q = (rows.astype(np.float64) for rows in (case.rows(), dense(case.draft, vocab).q_probs))
        assert found == RULES[rule](p, q, case.draft.tokens.tolist(), Uniforms(numpy.uniform))
        assert native.counter == numpy.counter
        counts.add(found[0])
    assert counts == set(range(6))


@pytest.mark.parametrize("rule", RULES)
def test_a_sparse_q_decides_as_the_dense_one(rule):
    for seed in range(300):
        case = Case.random(seed, 50)
        whole = dense(case.draft, 50)
        found, wanted = (
            accept(case.logits, draft, case.sampling, _native.Rng(seed), history=case.history, rule=rule)
            for draft in (case.draft, whole)
        )
        assert found == wanted


def test_a_point_mass_is_a_list_of_one():
    """Accepted with probability p(x), and never the correction."""
    p = np.array([0.5, 0.3, 0.2])
    draft = Draft(ids([1]), float32([[1]]), ids([[1]]))
    for rule in RULES:
        found = accept_results(rule, logits_of([p, p]), draft, seeds=range(4000))
        accepted = np.array([n for n, _ in found])
        assert accepted.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 4000))
        assert {token for n, token in found if n == 0} == {0, 2}
        assert {token for n, token in found if n == 1} == {0, 1, 2}


# p and q of token 0, which is proposed, and whether it stands.
CORNERS = [
    ([0.6, 0.4], [0.5, 0.5], True),
    ([0.5, 0.5], [0.5, 0.5], True),
    ([0.0, 1.0], [0.5, 0.5], False),
    ([0.5, 0.5], [0.0, 1.0], True),
    ([0.0, 1.0], [0.0, 1.0], False),
]


@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize(("p", "q", "stands"), CORNERS)
def test_corners_are_decided_without_chance(rule, p, q, stands):
    draft = Draft(ids([0]), float32([q]))
    found = accept_results(rule, logits_of([p, p]), draft)
    assert {n for n, _ in found} == {int(stands)}
    for u in (0.0, 0.5, 1 - 2**-53):
        # The draws after the first are of the token.
        uniforms = iter([u, 0.25])
        n, _ = RULES[rule](np.array([p, p]), np.array([q]), [0], Uniforms(lambda draws=uniforms: next(draws)))
        assert n == int(stands)


def test_a_residual_of_nothing_draws_from_p():
    """p and q agree and give the proposal nothing: it falls, and nothing is left of p - q."""
    logits = logits_of([[0.0, 0.25, 0.75]] * 2)
    p = _native.Sampler(PLAIN.policy()).distribution(logits[0])
    found = accept_results("token", logits, Draft(ids([0]), float32([p])), seeds=range(2000))
    assert {n for n, _ in found} == {0}
    tokens = np.bincount([token for _, token in found], minlength=3)
    assert tokens[0] == 0
    assert tokens[1] / 2000 == pytest.approx(0.25, abs=4 * np.sqrt(0.1875 / 2000))


def test_a_small_residual_is_still_the_residual():
    p, q = [0.0, 0.5 + 1e-6, 0.5 - 1e-6], [0.0, 0.5, 0.5]
    found = accept_results("token", logits_of([p, p]), Draft(ids([0]), float32([q])))
    assert set(found) == {(0, 1)}


def test_a_rejected_proposal_and_removed_tokens_are_never_the_correction():
    p, q = [0.4, 0.0, 0.3, 0.3], [0.1, 0.1, 0.7, 0.1]
    found = accept_results("token", logits_of([p, p]), Draft(ids([2]), float32([q])))
    assert {token for n, token in found if n == 0} == {0, 3}


@pytest.mark.parametrize("rule", RULES)
def test_greedy_stops_at_the_first_miss_and_draws_nothing(rule):
    logits = np.eye(4, 5)[:, ::-1]  # arg max 4, 3, 2, 1
    generator = _native.Rng(3)
    for tokens, wanted in [
        ([4, 0, 2], (1, 3)),  # a later match does not count
        ([0, 3, 2], (0, 4)),
        ([4, 3, 2], (3, 1)),
        ([4, 3, 0], (2, 2)),
        ([], (0, 4)),
    ]:
        k = len(tokens)
        draft = Draft(ids(tokens), np.full((k, 5), 0.2, np.float32))
        assert accept(float32(logits[: k + 1]), draft, GREEDY, generator, rule=rule) == wanted
    assert generator.counter == 0


@pytest.mark.parametrize("rule", RULES)
def test_greedy_takes_the_lowest_of_equals(rule):
    logits = float32([[1, 7, 7], [7, 0, 7]])
    for token, wanted in [(1, (1, 0)), (2, (0, 1))]:
        assert accept(logits, Draft(ids([token]), float32([[1]]), ids([[token]])), GREEDY, _native.Rng(0)) == wanted


@pytest.mark.parametrize("rule", RULES)
def test_greedy_is_the_arg_max_after_bias_and_penalties(rule):
    """Token 0 is likeliest until it has been seen once; the bias bans 2."""
    sampling = Sampling(temperature=0, presence_penalty=5, logit_bias={2: -np.inf})
    logits = float32([[3, 2, 9]] * 3)
    draft = Draft(ids([0, 0]), float32([[1], [1]]), ids([[0], [0]]))
    assert accept(logits, draft, sampling, _native.Rng(0), rule=rule) == (1, 1)
    assert accept(logits, draft, sampling, _native.Rng(0), rule=rule, history=[2, 0]) == (0, 1)


@pytest.mark.parametrize("rule", RULES)
def test_penalties_see_the_accepted_proposals(rule):
    """A token that may come once: its first proposal stands, its second never."""
    sampling = Sampling(presence_penalty=1000)
    logits = float32([[40, 0, 0, 0]] * 3)
    draft = Draft(ids([0, 0]), float32([[1], [1]]), ids([[0], [0]]))
    assert {n for n, _ in accept_results(rule, logits, draft, sampling)} == {1}
    assert {n for n, _ in accept_results(rule, logits, draft)} == {2}


@pytest.mark.parametrize("rule", RULES)
def test_without_proposals_it_is_plain_sampling(rule):
    logits = float32(np.random.default_rng(0).normal(size=(1, 50)))
    sampler, nothing = _native.Sampler(PLAIN.policy()), Draft(ids([]), float32(np.zeros((0, 50))))
    for seed in range(50):
        found = accept(logits, nothing, PLAIN, _native.Rng(seed), rule=rule)
        assert found == (0, sampler.sample(logits[0], ids([]), _native.Rng(seed)))


@pytest.mark.parametrize("rule", RULES)
def test_a_longer_draft_is_cut_to_the_rows(rule):
    case = Case.random(4, 30)
    k = len(case.draft.tokens)
    assert k >= 2
    shorter = Draft(case.draft.tokens[:1], case.draft.q_probs[:1], case.draft.q_ids[:1])
    for seed in range(100):
        found, wanted = (
            accept(case.logits[:2], draft, case.sampling, _native.Rng(seed), rule=rule)
            for draft in (case.draft, shorter)
        )
        assert found == wanted


def test_a_sampler_serves_as_the_policy():
    case = Case.random(4, 30)
    sampler = _native.Sampler(case.sampling.policy())
    found, wanted = (
        [accept(case.logits, case.draft, policy, _native.Rng(seed), history=case.history) for seed in range(50)]
        for policy in (sampler, case.sampling)
    )
    assert found == wanted


def test_match_needs_no_q():
    logits = float32(np.zeros((3, 4)))
    draft = Draft(ids([0, 1]), np.zeros((2, 0), np.float32))
    assert {n for n, _ in accept_results("match", logits, draft)} == {0, 1, 2}
    assert accept(logits, draft, GREEDY, _native.Rng(0)) == (1, 0)
    with pytest.raises(RequestError, match="0 values of q for 2 proposals"):
        accept(logits, draft, PLAIN, _native.Rng(0))


def rejected_first():
    """Logits of three rows whose first proposal, 0, cannot stand."""
    return logits_of([[0.0, 0.5, 0.5], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4]])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("sampling", [PLAIN, GREEDY], ids=["sampled", "greedy"])
@pytest.mark.parametrize(
    ("damage", "error", "message"),
    [(np.nan, BackendError, "token 1 of 3 is NaN"), (-np.inf, RequestError, "all 3 logits are -inf")],
)
def test_damaged_rows(rule, sampling, damage, error, message):
    """An error where the row is needed; rows after the first rejection are not looked at."""
    draft = Draft(ids([0, 0]), float32([[1], [1]]), ids([[0], [0]]))
    logits = rejected_first()
    logits[0] = [np.log(0.5), damage, damage]
    logits[0, 0] = damage if damage < 0 else logits[0, 0]
    with pytest.raises(error, match=message):
        accept(logits, draft, sampling, _native.Rng(0), rule=rule)
    logits = rejected_first()
    logits[1:] = damage
    assert accept(logits, draft, sampling, _native.Rng(0), rule=rule)[0] == 0


@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_q_that_is_no_distribution_is_refused(rule):
    p = logits_of([[0.25, 0.75], [0.5, 0.5]])
    for bad in (np.nan, np.inf, -0.5):
        with pytest.raises(RequestError, match=r"q of the proposal 0 is .*, wanted a probability"):
            accept(p, Draft(ids([0]), float32([[bad, 0.5]])), PLAIN, _native.Rng(0), rule=rule)
    # Away from the proposal it shows where the residual is formed.
    for bad in (np.nan, np.inf):
        damaged = Draft(ids([0]), float32([[1e6, bad]]))
        with pytest.raises(RequestError, match="residual of p and q has no finite mass"):
            accept(p, damaged, PLAIN, _native.Rng(0), rule=rule)
    both = Draft(ids([1, 0]), float32([[0.6, 0.4], [1.0, np.nan]]))
    with pytest.raises(RequestError, match="residual of p and q has no finite mass"):
        accept(logits_of([[0.5, 0.5], [1e-9, 1.0], [0.5, 0.5]]), both, PLAIN, _native.Rng(0), rule=rule)


GOOD = {"tokens": ids([0, 1]), "q_probs": float32(np.full((2, 3), 1 / 3)), "q_ids": None}
LISTED = {"tokens": ids([0, 1]), "q_probs": float32(np.full((2, 2), 0.5)), "q_ids": ids([[0, 2], [1, 2]])}


@pytest.mark.parametrize(
    ("logits", "draft", "message"),
    [
        (np.zeros((4, 3)), GOOD, r"logits have the shape \[4, 3\], wanted \[3, 3\]"),
        (np.zeros((0, 3)), GOOD, r"logits have the shape \[0, 3\], wanted \[2, 3\]"),
        (np.zeros((3, 0)), GOOD, "0 logits for 2 proposals, wanted 3 rows"),
        (np.zeros(3), GOOD, "logits are a 1-dimensional array"),
        (np.zeros((3, 6))[:, ::2], GOOD, "logits are .* wanted 2 contiguous of float32"),
        (np.zeros((3, 4)), GOOD, "6 values of q for 2 proposals over 4 tokens"),
        (np.zeros((3, 3)), GOOD | {"tokens": np.array([0, 1])}, "proposals are .* of int64"),
        (np.zeros((3, 3)), GOOD | {"tokens": ids([0, 3])}, r"token 3 among the proposals .* \[0, 3\)"),
        (np.zeros((3, 3)), GOOD | {"tokens": ids([-1, 0])}, "token -1 among the proposals"),
        (np.zeros((3, 3)), GOOD | {"q_probs": np.zeros((2, 3))}, "probabilities of q are .* of float64"),
        (np.zeros((3, 3)), GOOD | {"q_probs": GOOD["q_probs"][:1]}, r"q have the shape \[1, 3\], wanted \[2, 3\]"),
        (np.zeros((3, 3)), LISTED | {"q_ids": ids([[0], [1]])}, r"ids of q have the shape \[2, 1\], wanted \[2, 2\]"),
        (np.zeros((3, 3)), LISTED | {"q_ids": ids([[0, 9], [1, 2]])}, "token 9 among the ids of q"),
        (np.zeros((3, 3)), LISTED | {"q_ids": ids([[1, 2], [1, 2]])}, "proposal 0 is not among the 2 ids of its q"),
    ],
)
@pytest.mark.parametrize("rule", ["token", "block"])
def test_shapes_and_ids_that_do_not_fit_are_refused(rule, logits, draft, message):
    logits = logits if not logits.flags.c_contiguous else float32(logits)
    with pytest.raises(RequestError, match=message):
        accept(logits, Draft(**draft), PLAIN, _native.Rng(0), rule=rule)
    assert accept(float32(np.zeros((3, 3))), Draft(**GOOD), PLAIN, _native.Rng(0), rule=rule)[0] in (0, 1, 2)


def test_another_rule_is_refused():
    for rule in ("tokens", "", "Block"):
        with pytest.raises(RequestError, match=f'the rule is "{rule}", wanted "token", "match" or "block"'):
            accept(float32(np.zeros((3, 3))), Draft(**GOOD), PLAIN, _native.Rng(0), rule=rule)


def over_candidates(logits, listed, sampling=PLAIN, history=()):
    sampler = _native.Sampler(sampling.policy())
    return sampler.distribution(float32(logits), ids(history), ids(listed))


SETTINGS = {
    "repetition_penalty": 1.3,
    "presence_penalty": 0.4,
    "frequency_penalty": 0.2,
    "logit_bias": {2: 1.5, 7: -np.inf, 90: 3.0},
}


@pytest.mark.parametrize(
    "settings",
    [{}, SETTINGS, SETTINGS | {"temperature": 0.6, "top_k": 4, "top_p": 0.9}, SETTINGS | {"penalty_last_n": 2}],
    ids=str,
)
def test_a_draft_vocabulary_is_a_row_whose_other_tokens_are_removed(settings):
    generator = np.random.default_rng(8)
    whole = float32(np.full(100, -np.inf))
    listed = generator.permutation(100)[:20]
    listed[:3] = [2, 7, 30]
    listed = np.unique(listed)
    whole[listed] = generator.normal(size=len(listed))
    history = [30, 30, 2, 99, 55, 30, 2]
    sampling = Sampling(**settings)
    wanted = _native.Sampler(sampling.policy()).distribution(whole, ids(history))
    # Any order will do; among these logits there are no ties.
    for order in (listed, generator.permutation(listed)):
        found = over_candidates(whole[order], order, sampling, history)
        np.testing.assert_allclose(found, wanted[order], rtol=1e-6)
        assert wanted[order].sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)


def test_a_draft_vocabulary_of_all_tokens_is_the_row_bit_for_bit():
    logits = np.random.default_rng(3).normal(size=200)
    sampling = Sampling(top_p=0.9, presence_penalty=0.5, logit_bias={5: 1.0})
    whole = _native.Sampler(sampling.policy()).distribution(float32(logits), ids([1, 5, 9]))
    assert np.array_equal(over_candidates(logits, np.arange(200), sampling, [1, 5, 9]), whole)


def test_a_draft_vocabulary_matches_the_reference():
    logits, listed = [1.0, -0.5, 0.25], [40, 3, 17]
    adjusted = reference_sampling.distribution(logits, [0, 0, 2], presence=0.5, bias={1: 0.75})
    sampling = Sampling(presence_penalty=0.5, logit_bias={3: 0.75})
    np.testing.assert_allclose(over_candidates(logits, listed, sampling, [40, 40, 17]), adjusted, rtol=1e-6)


def test_counts_do_not_leak_between_rows_and_draft_vocabularies():
    sampler = _native.Sampler(Sampling(frequency_penalty=1).policy())
    row, history = float32([1, 2, 3, 4]), ids([0, 0, 3])
    first = sampler.distribution(row, history)
    for listed in ([3, 0], [2, 1, 0, 3]):
        sampler.distribution(row[: len(listed)], history, ids(listed))
        assert np.array_equal(sampler.distribution(row, history), first)


def test_a_draw_from_a_draft_vocabulary_is_a_listed_token():
    sampler, generator = _native.Sampler(PLAIN.policy()), _native.Rng(6)
    logits, listed = float32([0, -np.inf, 1]), ids([50, 60, 70])
    drawn = {sampler.sample(logits, ids([]), generator, listed) for _ in range(100)}
    assert drawn == {50, 70}
    greedy = _native.Sampler(GREEDY.policy())
    assert greedy.sample(logits, ids([]), generator, listed) == 70
    assert greedy.distribution(float32([2, 2]), ids=ids([9, 4])).tolist() == [1, 0]
    assert generator.counter == 100


def test_a_draft_vocabulary_that_does_not_fit_is_refused():
    with pytest.raises(RequestError, match="2 candidates for 3 logits"):
        over_candidates([1, 2, 3], [1, 2])
    with pytest.raises(RequestError, match="token 4 is among the candidates twice"):
        over_candidates([1, 2, 3], [4, 1, 4], Sampling(presence_penalty=1))
    with pytest.raises(RequestError, match=r"ids are .* of int64"):
        _native.Sampler(PLAIN.policy()).distribution(float32([1]), ids([]), np.array([1]))


def test_only_penalties_make_the_history_matter():
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        assert Sampling(**{name: 0.5}).policy().penalises
    assert not Sampling(temperature=0.5, top_k=3, logit_bias={0: 1.0}).policy().penalises
