// The device kernels that accept proposals (launcher.h, DeviceAcceptance), emulated: against the rule in double, and
// whether what comes out follows the target.

#define DS4_EMULATED

#include <array>

#include "check.h"
#include "ds4/errors.h"
#include "emulator/open_launcher.h"
#include "gpu/gumbel_noise.cuh"
#include "gumbel_reference.h"
#include "run_graph.h"

using ds4::kernels::DeviceAcceptance;
using ds4::kernels::DrawKey;
using test::Drawn;
namespace simt = ds4::kernels::simt;

namespace {

using Dialect = ds4::emulator::Dialect;
constexpr std::initializer_list<Dialect> kDialects = {Dialect::wave32, Dialect::wave64, Dialect::metal};
constexpr float kNone = -std::numeric_limits<float>::infinity();

using AcceptResult = std::array<int32_t, 2>;

struct Problem {
    int vocab, k;
    float temperature;
    std::vector<float> p, q;  // logits [vocab, k + 1] and [vocab, k]; no q: point masses
    std::vector<int32_t> proposals;
    DrawKey key{42, 0};

    std::span<const float> p_row(int i) const { return std::span(p).subspan(static_cast<size_t>(i) * vocab, vocab); }
    std::span<const float> q_row(int i) const { return std::span(q).subspan(static_cast<size_t>(i) * vocab, vocab); }
};

/// Logits of p and q that agree more or less, and proposals that are drawn from q.
Problem random_problem(int vocab, int k, float temperature, bool has_q, uint32_t seed, float apart) {
    Problem x{vocab, k, temperature, test::noise(static_cast<size_t>(vocab) * (k + 1), seed, 2), {}, {}};
    const std::vector<float> away = test::noise(static_cast<size_t>(vocab) * k, seed + 1, apart);
    for (size_t i = 0; i < away.size(); i++) x.q.push_back(x.p[i] + away[i]);
    x.key.counter = seed;
    for (int i = 0; i < k; i++) {
        const auto row = x.q_row(i);
        int32_t best = 0;
        double score = -test::kInfinity;
        for (int v = 0; v < vocab; v++) {
            const double noise = temperature > 0 ? -std::log(test::exponential(x.key, Drawn::proposal, i, v)) : 0;
            const double own = row[v] / (temperature > 0 ? temperature : 1) + noise;
            if (own > score) best = v, score = own;
        }
        x.proposals.push_back(best);
    }
    if (!has_q) x.q.clear();
    return x;
}

AcceptResult run(const Problem& x, Dialect dialect) {
    AcceptResult result{-2, -2};
    DeviceAcceptance w{};
    w.p = x.p.data();
    w.q = x.q.empty() ? nullptr : x.q.data();
    w.proposals = x.proposals.data();
    w.temperature = x.temperature;
    w.key = x.key;
    w.vocab = x.vocab, w.k = x.k;
    w.result = result.data();
    const auto launcher = ds4::emulator::open_launcher(dialect);
    launcher->run(w);
    launcher->synchronize();
    return result;
}

/// log q of row i, as the rule sees it.
std::vector<double> log_q(const Problem& x, int i) {
    if (!x.q.empty()) return test::log_softmax(x.q_row(i), x.temperature);
    std::vector<double> one(x.vocab, -test::kInfinity);
    one[x.proposals[i]] = 0;
    return one;
}

std::vector<double> log_residual(const std::vector<double>& p, const std::vector<double>& q) {
    std::vector<double> rest;
    double mass = 0;
    for (size_t v = 0; v < p.size(); v++) {
        const double weight = std::max(std::exp(p[v]) - std::exp(q[v]), 0.0);
        mass += weight;
        rest.push_back(std::log(weight));
    }
    return mass > 1e-8 ? rest : p;
}

/// The rule in double: how many stand, and the log-weights from which the next token is drawn.
std::pair<int, std::vector<double>> judged(const Problem& x) {
    for (int i = 0; i < x.k; i++) {
        const std::vector<double> p = test::log_softmax(x.p_row(i), x.temperature), q = log_q(x, i);
        const int32_t token = x.proposals[i];
        const double log_u = -test::exponential(x.key, Drawn::acceptance, i, 0);
        if (log_u + q[token] < p[token]) continue;
        return {i, log_residual(p, q)};
    }
    return {x.k, test::log_softmax(x.p_row(x.k), x.temperature)};
}

AcceptResult greedy(const Problem& x) {
    for (int i = 0;; i++) {
        const auto row = x.p_row(i);
        const auto best = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
        if (i == x.k || best != x.proposals[i]) return {i, best};
    }
}

/// Checks that all dialects agree with the reference. Returns how many proposals are accepted.
int verify(const Problem& x) {
    const AcceptResult found = run(x, Dialect::wave32);
    if (x.temperature > 0) {
        const auto [stand, weights] = judged(x);
        CHECK(found[0] == stand);
        CHECK(test::missed_by(weights, x.key, Drawn::token, stand, found[1]) < 1e-5);
    } else {
        CHECK(found == greedy(x));
    }
    CHECK(found == run(x, Dialect::wave64));
    CHECK(found == run(x, Dialect::metal));
    return found[0];
}

simt::NoiseKey words(const DrawKey& key) { return simt::noise_key(key); }

simt::RowSum row_sum(std::span<const float> row, float scale) {
    simt::Candidate c = simt::no_candidate();
    for (size_t v = 0; v < row.size(); v++) c = simt::merged(c, simt::candidate(row[v], 0, int(v)), scale);
    return simt::row_sum(c);
}

/// A draw from softmax(q scale), by the kernels' own arithmetic.
int32_t proposed(std::span<const float> q, const DrawKey& key, float scale) {
    simt::Candidate c = simt::no_candidate();
    for (size_t v = 0; v < q.size(); v++) {
        const float noise = simt::gumbel(words(key), simt::kProposal, 0, int(v));
        c = simt::merged(c, simt::candidate(q[v], noise, int(v)), scale);
    }
    return c.token;
}

/// Draft, acceptance and the token after it for one position, by the kernels' own arithmetic: the token that comes out.
/// `said` is the q that is reported, which is right where it is `drawn`.
int32_t emitted(std::span<const float> p, std::span<const float> drawn, std::span<const float> said, const DrawKey& key,
                float scale) {
    const int32_t proposal = proposed(drawn, key, scale);
    const simt::RowSum p_sum = row_sum(p, scale), q_sum = row_sum(said, scale);
    const auto log_p = [&](size_t v) { return simt::log_probability(p_sum, p[v], scale); };
    const auto log_q = [&](size_t v) { return simt::log_probability(q_sum, said[v], scale); };
    if (simt::accepted(log_p(proposal), log_q(proposal), simt::exponential(words(key), simt::kAcceptance, 0, 0))) {
        return proposal;
    }
    simt::Pick found = simt::no_pick();
    for (size_t v = 0; v < p.size(); v++) {
        const float noise = simt::gumbel(words(key), simt::kToken, 0, int(v));
        found = simt::merged(found, simt::pick(log_p(v), log_q(v), noise, int(v)));
    }
    return simt::picked(found);
}

std::vector<double> probabilities(std::span<const float> logits, double temperature) {
    std::vector<double> p = test::log_softmax(logits, temperature);
    for (double& x : p) x = std::exp(x);
    return p;
}

/// Pearson's statistic of the tokens that come out, against the target.
double statistic(const std::vector<float>& p, const std::vector<float>& drawn, const std::vector<float>& said) {
    constexpr float kTemperature = 0.7f;
    std::vector<int> counts(p.size());
    for (uint64_t i = 0; i < 100000; i++) counts[emitted(p, drawn, said, {7, i}, 1 / kTemperature)]++;
    return test::chi_square(counts, probabilities(p, kTemperature));
}

const std::vector<float> kP = {0.3f, -0.5f, 1.0f, 0.1f, -2.0f, kNone, 0.4f};
const std::vector<float> kNear = {0.2f, -0.3f, 1.1f, 0.0f, -1.5f, -3.0f, 0.5f};
const std::vector<float> kFar = {-3.0f, 2.0f, -2.5f, kNone, 1.5f, 1.0f, -1.0f};
/// The 0.999 quantile of chi-square with six degrees of freedom.
constexpr double kBound = 22.46;

}  // namespace

CASE(device_judgements_are_the_rule) {
    int stand = 0, judged = 0;
    for (const int vocab : {1, 7, 129, 1000}) {
        for (const float temperature : {0.0f, 0.7f, 1.5f}) {
            for (const int k : {0, 1, 3, 7}) {
                for (const bool has_q : {true, false}) {
                    stand += verify(random_problem(vocab, k, temperature, has_q, vocab + 10 * k + has_q, 0.5f));
                    judged += k;
                }
            }
        }
    }
    verify(random_problem(5003, 5, 0.7f, true, 3, 0.3f));
    CHECK(stand > judged / 4 && stand < judged * 3 / 4);  // both ways were taken
}

CASE(device_judgements_of_long_blocks) {
    const Problem x = random_problem(40, 16, 0.7f, true, 5, 0.01f);
    CHECK(verify(x) > 8);
    Problem y = random_problem(40, 17, 0.7f, true, 5, 0.01f);
    REQUIRE_THROWS(ds4::BackendError, run(y, Dialect::wave32));
}

CASE(device_judgements_of_extreme_logits) {
    for (const float temperature : {0.0f, 0.05f, 0.7f}) {
        for (uint32_t seed = 0; seed < 6; seed++) {
            Problem x = random_problem(300, 3, temperature, true, seed, 1);
            for (size_t i = 0; i < x.p.size(); i++) x.p[i] += i % 3 ? 80.0f : -80.0f;
            for (size_t i = 0; i < x.q.size(); i++) x.q[i] += i % 3 ? 80.0f : -80.0f;
            for (size_t i = 0; i < x.p.size(); i += 4) x.p[i] = kNone;
            verify(x);
        }
    }
}

CASE(device_judgements_take_the_lowest_id_of_equals) {
    Problem x{600, 2, 0, std::vector<float>(1800, 1.5f), {}, {0, 0}};
    CHECK(verify(x) == 2);
    x.proposals = {0, 1};
    CHECK(verify(x) == 1);
}

CASE(device_judgements_draw_from_p_where_no_residual_is_left) {
    // The proposal has p = 0 in float's reach and q = p elsewhere: it falls, and what is left is rounding.
    Problem x{4, 1, 1, {0, 0, 0, -60, 0, 0, 0, 0}, {0, 0, 0, -58}, {3}};
    std::vector<int> counts(4);
    for (uint64_t i = 0; i < 80; i++) {
        x.key.counter = i;
        const AcceptResult v = run(x, Dialect::wave32);
        if (v[0] == 0) counts[v[1]]++;
    }
    CHECK(counts[3] == 0);
    CHECK(counts[0] > 9 && counts[1] > 9 && counts[2] > 9);
}

CASE(device_judgements_name_damaged_rows) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const float temperature : {0.0f, 0.7f}) {
        for (const Dialect d : kDialects) {
            Problem x = random_problem(300, 2, temperature, true, 5, 0.0f);
            x.p[300 + 7] = nan;
            CHECK((run(x, d) == AcceptResult{1, -1}));
            x.p.assign(x.p.size(), kNone);
            CHECK((run(x, d) == AcceptResult{0, -1}));
        }
    }
    for (const Dialect d : kDialects) {
        Problem x = random_problem(300, 2, 0.7f, true, 5, 0.0f);
        x.q[9] = nan;
        CHECK((run(x, d) == AcceptResult{0, -1}));
    }
}

CASE(device_draws_follow_the_target_whatever_the_drafter) {
    CHECK(statistic(kP, kP, kP) < kBound);
    CHECK(statistic(kP, kNear, kNear) < kBound);
    CHECK(statistic(kP, kFar, kFar) < kBound);
}

CASE(device_draws_betray_a_q_that_was_not_drawn_from) {
    CHECK(statistic(kP, kNear, kFar) > 10 * kBound);
    CHECK(statistic(kP, kFar, kNear) > 10 * kBound);
}

CASE(device_kernels_follow_the_target) {
    constexpr float kTemperature = 0.7f;
    std::vector<int> counts(kP.size());
    Problem x{int(kP.size()), 1, kTemperature, kP, kNear, {0}};
    x.p.insert(x.p.end(), kP.begin(), kP.end());
    for (uint64_t i = 0; i < 200; i++) {
        x.key = {11, i};
        x.proposals[0] = proposed(kNear, x.key, 1 / kTemperature);
        const AcceptResult v = run(x, Dialect::wave32);
        counts[v[0] ? x.proposals[0] : v[1]]++;
    }
    CHECK(test::chi_square(counts, probabilities(kP, kTemperature)) < kBound);
}

CASE(device_noise_is_exponential_at_both_ends) {
    // Of n numbers the least is about 1 / n, and the greatest about log n.
    constexpr int kCount = 1 << 20;
    double least = test::kInfinity, greatest = 0, sum = 0, squares = 0;
    for (int i = 0; i < kCount; i++) {
        const float x = simt::exponential(words({3, 5}), simt::kToken, 2, i);
        const double wanted = test::exponential({3, 5}, Drawn::token, 2, i);
        CHECK_CLOSE(x, wanted, 4e-7 * wanted);
        least = std::min<double>(least, x);
        greatest = std::max<double>(greatest, x);
        sum += x;
        squares += double(x) * x;
    }
    CHECK(least > 0 && least * kCount < 7);
    CHECK(greatest > 11 && greatest < 21);
    CHECK_CLOSE(sum / kCount, 1, 0.005);
    CHECK_CLOSE(squares / kCount, 2, 0.02);
}
