"""The native sampler against a slow NumPy reference, its generator against published vectors, its draws against χ²."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import reference_sampling as reference

from ds4py import _native
from ds4py.errors import BackendError, RequestError
from ds4py.sampling.policy import Sampling

VOCABULARIES = [1, 2, 512, 129_280]
NEUTRAL = Sampling()
# Settings of the policy, and what the reference calls them.
POLICIES = [
    {},
    {"temperature": 0.0},
    {"temperature": 0.37},
    {"temperature": 4.0},
    {"top_k": 1},
    {"top_k": 40},
    {"top_k": 200_000},
    {"top_p": 0.0},
    {"top_p": 0.5},
    {"top_p": 0.95},
    {"min_p": 0.05},
    {"min_p": 1.0},
    {"top_k": 50, "top_p": 0.9},
    {"temperature": 0.6, "top_k": 100, "top_p": 0.97, "min_p": 0.02},
]
SHORT = {"repetition": "repetition_penalty", "presence": "presence_penalty", "frequency": "frequency_penalty"}
SHORT |= {"last_n": "penalty_last_n", "bias": "logit_bias"}


def float32(values):
    return np.asarray(values, dtype=np.float32)


def ids(values):
    return np.asarray(values, dtype=np.int32)


def distribution(logits, history=(), **settings):
    sampler = _native.Sampler(Sampling(**settings).policy())
    return sampler.distribution(float32(logits), ids(history))


def compare(logits, history=(), **settings):
    """Same support as the reference, same probabilities within float32, sum 1."""
    names = {SHORT.get(name, name): value for name, value in settings.items()}
    found = distribution(logits, history, **names)
    wanted = reference.distribution(logits, history, **settings)
    # Between the two a float32 may hold a probability or may not.
    assert not found[wanted == 0].any()
    assert found[wanted > 1e-34].all()
    # Relative, since a shifted logit of 40 is itself rounded by 2e-6.
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-36)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-7)
    assert found.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)


def row_of(kind, vocab, seed=0):
    generator = np.random.default_rng((seed, vocab))
    row = generator.normal(size=vocab)
    if kind == "peaked":
        row *= 5
    elif kind == "ties":
        row = np.round(row)
    elif kind == "masked":
        row[generator.random(vocab) < 0.5] = -np.inf
        row[vocab // 2] = 0.25
    elif kind == "huge":
        row[:] = np.linspace(-3e38, 3e38, vocab) if vocab > 1 else 3e38
    elif kind == "small":
        row *= 1e-30
    return float32(row)


@pytest.mark.parametrize("vocab", VOCABULARIES)
@pytest.mark.parametrize("kind", ["plain", "peaked", "masked", "huge"])
@pytest.mark.parametrize("settings", POLICIES, ids=str)
def test_every_step_matches_the_reference(kind, vocab, settings):
    compare(row_of(kind, vocab), **settings)


@pytest.mark.parametrize("vocab", VOCABULARIES)
@pytest.mark.parametrize("settings", [s for s in POLICIES if s.get("top_p", 1) == 1], ids=str)
def test_tied_logits_match_the_reference(vocab, settings):
    compare(row_of("ties", vocab), **settings)


@pytest.mark.parametrize("seed", range(40))
def test_random_policies_match_the_reference(seed):
    generator = np.random.default_rng(seed)
    vocab = int(generator.integers(2, 400))
    history = generator.integers(0, vocab, size=generator.integers(0, 60))
    settings = {
        "temperature": float(generator.choice([0.0, 0.5, 1.0, 1.3])),
        "top_k": int(generator.integers(0, vocab + 2)),
        "top_p": float(generator.uniform(0.3, 1)),
        "min_p": float(generator.uniform(0, 0.1)),
        "repetition": float(generator.uniform(0.8, 1.5)),
        "presence": float(generator.normal()),
        "frequency": float(generator.normal() * 0.1),
        "last_n": int(generator.integers(-1, 70)),
        "bias": {int(token): float(generator.normal()) for token in generator.integers(0, vocab, size=3)},
    }
    compare(row_of("plain", vocab, seed), history, **settings)


def test_a_flat_row_keeps_the_lowest_ids_under_top_p():
    for vocab, p, kept in [(10, 0.45, 5), (129_280, 0.5, 64_640), (8, 0.0, 1)]:
        found = distribution(np.zeros(vocab), top_p=p)
        assert np.array_equal(np.flatnonzero(found), np.arange(kept))


def test_top_p_keeps_the_token_that_crosses():
    logits = np.log([0.1, 0.5, 0.25, 0.15])
    assert np.flatnonzero(distribution(logits, top_p=0.49)).tolist() == [1]
    assert np.flatnonzero(distribution(logits, top_p=0.51)).tolist() == [1, 2]
    assert np.flatnonzero(distribution(logits, top_p=0.76)).tolist() == [1, 2, 3]


def test_top_k_keeps_ties_with_the_kth():
    assert np.flatnonzero(distribution([3, 1, 2, 2, 2, 0], top_k=2)).tolist() == [0, 2, 3, 4]
    # Both zeros are the same number.
    assert np.flatnonzero(distribution([0.0, -0.0, 0.0, -1], top_k=1)).tolist() == [0, 1, 2]


def test_min_p_looks_at_what_top_p_left():
    # The last passes min_p against 0.5, and is dropped by top_p before that.
    logits = np.log([0.5, 0.3, 0.14, 0.06])
    assert np.count_nonzero(distribution(logits, min_p=0.1)) == 4
    assert np.count_nonzero(distribution(logits, min_p=0.1, top_p=0.93)) == 3
    assert np.count_nonzero(distribution(logits, min_p=0.7)) == 1


def test_top_p_is_measured_after_top_k():
    # The first has 0.545 of the two largest, and 0.3 of them all.
    logits = np.log([0.3, 0.25, 0.2, 0.24, 0.01])
    assert np.count_nonzero(distribution(logits, top_p=0.54)) == 2
    assert np.count_nonzero(distribution(logits, top_k=2, top_p=0.54)) == 1


@pytest.mark.parametrize("kind", ["plain", "peaked", "ties", "small"])
def test_temperature_one_is_the_softmax_of_the_logits_bit_for_bit(kind):
    logits = row_of(kind, 1000)
    plain = distribution(logits)
    # Doubling and halving are exact, so the same shifted logits must give the same bits.
    assert np.array_equal(plain, distribution(logits * 2, temperature=2.0))
    assert np.array_equal(plain, distribution(logits, top_k=1000, top_p=1.0, min_p=0.0))
    shifted = (logits - logits.max()).astype(np.float64)
    np.testing.assert_allclose(plain, reference.softmax(shifted), rtol=4e-7)


def test_the_exponential_is_exact_to_a_few_units():
    exponents = float32(np.linspace(-87, 0, 200_001))
    found = distribution(exponents)
    ratios = found.astype(np.float64) / found[-1]
    normal = found > 1.2e-38
    wanted = np.exp(exponents.astype(np.float64))
    # 1e-7 of the exponential and two roundings of the division.
    np.testing.assert_allclose(ratios[normal], wanted[normal], rtol=2.2e-7)
    assert distribution([0, -200])[1] == 0


def test_a_tiny_temperature_does_not_overflow():
    assert distribution([3e38, -3e38, 2.9e38], temperature=2e-5).tolist() == [1, 0, 0]


def test_greedy_takes_the_lowest_of_equals_and_draws_nothing():
    generator = _native.Rng(5)
    sampler = _native.Sampler(Sampling(temperature=0).policy())
    logits = float32([1, 7, 7, -np.inf, 7])
    assert sampler.distribution(logits).tolist() == [0, 1, 0, 0, 0]
    assert sampler.sample(logits, ids([]), generator) == 1
    assert sampler.sample(float32([0.0, -0.0, -1]), ids([]), generator) == 0
    assert sampler.sample(float32([-0.0, 0.0, -1]), ids([]), generator) == 0
    assert generator.counter == 0
    assert Sampling(temperature=0).greedy and Sampling(temperature=9e-6).greedy and not NEUTRAL.greedy


def test_penalties_count_only_the_last_n():
    logits = [1.0, 1.0, -1.0, 1.0]
    history = [0, 0, 1, 2, 2, 2]
    for last_n in (-1, 0, 1, 4, 6, 99):
        compare(logits, history, repetition=1.3, presence=0.2, frequency=0.1, last_n=last_n)
    unpenalised = distribution(logits)
    assert np.array_equal(distribution(logits, history, presence_penalty=2, penalty_last_n=0), unpenalised)
    assert np.array_equal(distribution(logits, [], presence_penalty=2), unpenalised)
    assert distribution(logits, [3], repetition_penalty=2)[3] < unpenalised[3]
    assert distribution(logits, [2], repetition_penalty=2)[2] < unpenalised[2]


def test_counts_of_one_call_do_not_leak_into_the_next():
    sampler = _native.Sampler(Sampling(frequency_penalty=1).policy())
    logits = float32([1, 2, 3])
    first = sampler.distribution(logits, ids([0, 0, 1]))
    with pytest.raises(RequestError):
        sampler.distribution(logits, ids([2, 2, 3]))
    assert np.array_equal(sampler.distribution(logits, ids([0, 0, 1])), first)
    compare(float32([1, 2, 3, 4, 5]), [4, 4], frequency=1.0)


def test_a_bias_moves_and_bans_tokens():
    compare([1.0, 2.0, 3.0], bias={0: 4.5, 2: -1.0})
    compare([1.0, 2.0, 3.0], bias={2: -np.inf}, temperature=0.5)
    assert distribution([1, 2, 3], logit_bias={2: -np.inf}, temperature=0).tolist() == [0, 1, 0]
    # The bias comes before the penalties: -1 + 2 is positive, so it is divided.
    biased = distribution([-1.0, 0.0], [0], logit_bias={0: 2.0}, repetition_penalty=2.0)
    np.testing.assert_allclose(biased, reference.softmax(np.array([0.5, 0.0])), rtol=1e-6)


def test_inputs_are_left_alone():
    logits, history = row_of("plain", 100), ids([1, 2])
    before = logits.copy()
    sampler = _native.Sampler(Sampling(top_k=3, presence_penalty=1, logit_bias={4: 1.0}).policy())
    first = sampler.distribution(logits, history)
    second = sampler.distribution(logits[::-1].copy(), history)
    assert np.array_equal(logits, before)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("position", [0, 37, 99])
def test_a_damaged_logit_is_named(position):
    for value, word in [(np.nan, "NaN"), (np.inf, r"\+inf")]:
        logits = row_of("plain", 100)
        logits[position] = value
        for temperature in (0.0, 1.0):
            with pytest.raises(BackendError, match=rf"token {position} of 100 is {word}"):
                distribution(logits, temperature=temperature)


def test_rows_without_a_token_are_refused():
    with pytest.raises(RequestError, match="all 3 logits are -inf"):
        distribution([-np.inf] * 3)
    with pytest.raises(RequestError, match="all 2 logits are -inf"):
        distribution([0.0, -np.inf], logit_bias={0: -np.inf}, temperature=0)
    with pytest.raises(RequestError, match="all 0 logits"):
        distribution([])


def test_ids_outside_the_vocabulary_are_refused():
    for history in ([3], [-1]):
        with pytest.raises(RequestError, match=rf"token {history[0]} in the history .* \[0, 3\)"):
            distribution([1, 2, 3], history, presence_penalty=1)
    with pytest.raises(RequestError, match="token 3 in the logit bias"):
        distribution([1, 2, 3], logit_bias={3: 1.0})


def test_arrays_of_other_kinds_are_refused_instead_of_copied():
    sampler = _native.Sampler(NEUTRAL.policy())
    for logits in (np.zeros(4), float32(np.zeros((2, 2))), float32(np.zeros(8))[::2]):
        with pytest.raises(RequestError, match="logits are"):
            sampler.distribution(logits)
    with pytest.raises(RequestError, match=r"history are .*int64"):
        sampler.distribution(float32([1, 2]), np.array([1], dtype=np.int64))


@pytest.mark.parametrize(
    ("counter", "key", "wanted"),
    [
        ([0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_words(counter, key, wanted):
    found = _native.philox4x32(counter, key)
    assert " ".join(f"{word:08x}" for word in found) == wanted
    assert reference.philox(counter, key) == list(found)


def test_uniforms_are_53_bits_of_the_block_of_their_number():
    seed, counter = 0x0123456789ABCDEF, (1 << 32) - 2
    generator = _native.Rng(seed, counter)
    for number in range(counter, counter + 5):
        words = reference.philox([number & 0xFFFFFFFF, number >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32])
        assert generator.uniform() == ((words[1] << 32 | words[0]) >> 11) * 2.0**-53
    assert (generator.seed, generator.counter) == (seed, counter + 5)


def draws(seed, count, counter=0, **settings):
    sampler = _native.Sampler(Sampling(**settings).policy())
    generator = _native.Rng(seed, counter)
    logits, history = row_of("plain", 300), ids([])
    return [sampler.sample(logits, history, generator) for _ in range(count)]


def test_a_seed_fixes_the_draws_and_a_counter_continues_them():
    stream = draws(11, 60)
    assert draws(11, 60) == stream
    assert draws(11, 20, counter=40) == stream[40:]
    assert draws(12, 60) != stream


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.5}, {"top_p": 0.8}, {"top_k": 5, "min_p": 0.1}], ids=str)
def test_draws_follow_the_distribution(settings):
    count = 200_000
    logits = float32([0.3, -1.0, 2.0, -np.inf, 1.1, 0.0, -3.0, 1.1])
    sampler = _native.Sampler(Sampling(**settings).policy())
    generator, history = _native.Rng(2024), ids([])
    found = np.bincount([sampler.sample(logits, history, generator) for _ in range(count)], minlength=8)
    wanted = reference.distribution(logits, **settings) * count
    support = wanted > 0
    assert not found[~support].any()
    statistic = ((found - wanted)[support] ** 2 / wanted[support]).sum()
    # The 99.9 % point of χ² with n degrees of freedom (Wilson and Hilferty).
    degrees = support.sum() - 1
    assert statistic < degrees * (1 - 2 / (9 * degrees) + 3.09 * np.sqrt(2 / (9 * degrees))) ** 3


def test_a_draw_inverts_the_cumulative_weights():
    weights = float32([0, 1, 0, 2, 1, 0])
    for u, token in [(0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (1 - 2**-53, 4)]:
        assert _native.draw(weights, u) == token
    # What a product u * total that rounds up to the total comes to.
    assert _native.draw(weights, 1.0) == 4


def test_a_draw_on_a_boundary_far_from_the_last_token():
    weights = np.zeros(4096, dtype=np.float32)
    weights[[100, 1500, 3000]] = [1, 2, 1]
    for u, token in [(0, 100), (0.2499, 100), (0.25, 1500), (0.7499, 1500), (0.75, 3000), (1.0, 3000)]:
        assert _native.draw(weights, u) == token


@pytest.mark.parametrize("vocab", VOCABULARIES)
def test_a_draw_never_returns_a_token_without_weight(vocab):
    generator = np.random.default_rng(vocab)
    weights = float32(generator.random(vocab) * (generator.random(vocab) < 0.01))
    weights[vocab // 2] = 0.3
    cumulative = np.cumsum(weights.astype(np.float64))
    for u in [0.0, 2**-53, 1 - 2**-53, *generator.random(200)]:
        token = _native.draw(weights, u)
        assert weights[token] > 0
        below = cumulative[token] - weights[token]
        assert below - 1e-9 <= u * cumulative[-1] <= cumulative[token] + 1e-9


def test_weights_without_a_finite_sum_are_refused():
    for weights in ([0, 0], [], [1, np.nan], [1, np.inf]):
        with pytest.raises(RequestError, match="wanted a finite sum above 0"):
            _native.draw(float32(weights), 0.5)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("temperature", [-0.1, np.nan, np.inf, 1e300, "hot", None, True]),
        ("top_k", [-1, 2**31, 1.5, "all", True]),
        ("top_p", [-0.01, 1.01, np.nan, None]),
        ("min_p", [-0.01, 1.01, np.nan]),
        ("repetition_penalty", [0, -1, np.inf, np.nan]),
        ("presence_penalty", [np.nan, np.inf, "x"]),
        ("frequency_penalty", [np.nan, -np.inf]),
        ("penalty_last_n", [-2, 2**40, 0.5]),
        ("logit_bias", [{-1: 1.0}, {0: np.nan}, {0: np.inf}, {"a": 1.0}, {0: "b"}, {2**31: 0.0}, [1.0]]),
        ("seed", [-1, 2**64, 1.0, "lucky"]),
    ],
)
def test_a_bad_field_is_named(name, values):
    for value in values:
        with pytest.raises(RequestError, match=rf"sampling: .*{name}.* is .*, wanted "):
            Sampling(**{name: value})


def test_the_native_policy_checks_itself():
    with pytest.raises(RequestError, match=r"top_p is 1\.5, wanted a number in"):
        _native.SamplingPolicy(top_p=1.5)
    with pytest.raises(TypeError):
        _native.SamplingPolicy(0.5)


def test_fields_reach_the_native_policy():
    settings = {
        "temperature": 0.5,
        "top_k": 7,
        "top_p": 0.75,
        "min_p": 0.125,
        "repetition_penalty": 1.5,
        "presence_penalty": -0.5,
        "frequency_penalty": 0.25,
        "penalty_last_n": 64,
        "logit_bias": {3: -1.5, 9: -np.inf},
    }
    policy = Sampling(**settings).policy()
    assert {name: getattr(policy, name) for name in settings} == settings
    defaults, native = NEUTRAL.policy(), _native.SamplingPolicy()
    assert all(getattr(defaults, name) == getattr(native, name) for name in settings)


def test_numpy_numbers_are_accepted():
    policy = Sampling(temperature=np.float32(0.5), top_k=np.int64(3), seed=np.uint64(7), logit_bias={np.int32(1): 2})
    assert (policy.policy().temperature, policy.policy().top_k, policy.resolved_seed()) == (0.5, 3, 7)
    assert policy.policy().logit_bias == {1: 2.0}


def test_the_policy_cannot_change_under_a_request():
    bias = {1: 2.0}
    sampling = Sampling(logit_bias=bias)
    bias[1] = 5.0
    assert sampling.policy().logit_bias == {1: 2.0}
    with pytest.raises(dataclasses.FrozenInstanceError):
        sampling.top_k = 3


def test_the_seed_is_reported():
    assert Sampling(seed=7).resolved_seed() == 7
    assert Sampling(seed=2**64 - 1).resolved_seed() == 2**64 - 1
    fresh = {NEUTRAL.resolved_seed() for _ in range(20)}
    assert len(fresh) == 20 and all(0 <= seed < 2**63 for seed in fresh)
