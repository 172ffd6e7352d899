// The sequential head of a draft (docs/dspark.md section 2.7): the CPU's node and ggml's operations against plain
// loops, and what both choose from.

#include <algorithm>
#include <limits>
#include <numeric>

#include "check.h"
#include "ops/cpu/draft_vocab.h"
#include "ops/markov.h"
#include "run_graph.h"

using ds4::ops::ProposalDraw;
using test::Graph;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Positions by sorting: greatest first, of equals the lowest.
std::vector<int32_t> sorted(std::span<const float> row) {
    std::vector<int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int32_t i) { return std::isnan(row[i]) ? -kInfinity : row[i]; };
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return value(a) > value(b); });
    return order;
}

std::vector<int32_t> listed(std::span<const float> row, size_t count) {
    std::vector<int32_t> ids = sorted(row);
    ids.resize(count);
    std::ranges::sort(ids);
    return ids;
}

void check_draft_vocab(const std::vector<float>& row) {
    for (size_t count : {size_t(1), size_t(2), row.size() / 33 + 1, row.size() / 2 + 1, row.size()}) {
        if (count > row.size()) continue;
        std::vector<int32_t> found(count);
        ds4::ops::cpu::likeliest_tokens(row, found);
        CHECK(found == listed(row, count));
    }
}

struct Problem {
    int64_t vocab, block, rank, draft_vocab;
    std::vector<float> base, w1, w2;
    int32_t anchor = 3;

    Problem(int64_t vocab, int64_t rank, int64_t draft_vocab, int64_t block = 5)
        : vocab(vocab),
          block(block),
          rank(rank),
          draft_vocab(draft_vocab),
          base(test::noise(vocab * block, 70)),
          w1(test::noise(rank * vocab, 71)),
          w2(test::noise(rank * vocab, 72, 0.3f)) {}

    std::span<const float> row(int64_t j) const { return std::span(base).subspan(j * vocab, vocab); }

    std::vector<int32_t> candidates(int64_t j) const { return listed(row(j), draft_vocab ? draft_vocab : vocab); }

    /// Logits of position j's candidates after `previous`.
    std::vector<float> logits(int64_t j, int32_t previous) const {
        std::vector<float> z;
        for (const int32_t id : candidates(j)) {
            double sum = row(j)[id];
            for (int64_t c = 0; c < rank; c++) sum += double(w1[previous * rank + c]) * w2[id * rank + c];
            z.push_back(static_cast<float>(sum));
        }
        return z;
    }

    std::vector<int32_t> likeliest() const {
        std::vector<int32_t> tokens;
        for (int64_t j = 0; j < block; j++) {
            const std::vector<float> z = logits(j, j ? tokens.back() : anchor);
            tokens.push_back(candidates(j)[std::ranges::max_element(z) - z.begin()]);
        }
        return tokens;
    }
};

struct Found {
    std::vector<int32_t> tokens, ids;
    std::vector<std::vector<float>> q;
    std::vector<float> rows;
};

/// Runs the chain with two threads.
Found run(const Problem& p, bool own, ProposalDraw* draw = nullptr, ggml_type type = GGML_TYPE_F32) {
    Graph g;
    g.b.choice = ds4::kernels::KernelChoice::of_cpu(own);
    ggml_tensor *w1 = nullptr, *w2 = nullptr;
    if (p.rank) w1 = g.floats(p.w1, {p.rank, p.vocab}, type), w2 = g.floats(p.w2, {p.rank, p.vocab}, type);
    const auto chain = ds4::ops::markov_chain(
        g.b, {g.floats(p.base, {p.vocab, p.block}), g.ints({p.anchor}, {1}), w1, w2, p.draft_vocab, draw});
    std::vector<ggml_tensor*> outputs = chain.tokens;
    outputs.insert(outputs.end(), chain.q.begin(), chain.q.end());
    if (chain.ids) outputs.push_back(chain.ids);
    if (chain.rows) outputs.push_back(chain.rows);
    for (ggml_tensor* t : outputs) {
        for (ggml_tensor* whole = t; whole; whole = whole->view_src) ggml_set_output(whole);
        g.b.expanded(t);
    }
    g.compute({});
    Found found;
    for (ggml_tensor* t : chain.tokens) found.tokens.push_back(g.read_ints(t)[0]);
    for (ggml_tensor* t : chain.q) found.q.push_back(g.read(t));
    if (chain.ids) found.ids = g.read_ints(chain.ids);
    if (chain.rows) found.rows = g.read(chain.rows);
    return found;
}

std::vector<int32_t> part(const std::vector<int32_t>& all, int64_t j, int64_t size) {
    return {all.begin() + j * size, all.begin() + (j + 1) * size};
}

/// The rows of W1 that a confidence head reads: of the anchor and all tokens but the last.
std::vector<float> embedded(const Problem& p, const std::vector<int32_t>& tokens) {
    std::vector<float> rows;
    for (int64_t j = 0; j < p.block; j++) {
        const auto row = p.w1.begin() + (j ? tokens[j - 1] : p.anchor) * p.rank;
        rows.insert(rows.end(), row, row + p.rank);
    }
    return rows;
}

ProposalDraw drawing(ds4::Sampler& sampler, const Problem& p) {
    ProposalDraw draw;
    draw.sampler = &sampler;
    draw.history = {8, 5, p.anchor};
    for (int64_t j = 0; j < p.block; j++) draw.uniforms.push_back(0.05 + 0.19 * static_cast<double>(j));
    return draw;
}

}  // namespace

CASE(a_draft_vocab_has_the_greatest_of_a_sort) {
    for (size_t size : {1, 2, 31, 32, 33, 1000, 5003}) check_draft_vocab(test::noise(size, 80));
}

CASE(of_equals_a_draft_vocab_has_the_first) {
    std::vector<float> row = test::noise(3000, 81);
    for (float& x : row) x = std::round(2 * x);
    check_draft_vocab(row);
    check_draft_vocab(std::vector<float>(700, -1.5f));
    check_draft_vocab(std::vector<float>(700, -kInfinity));
}

CASE(a_draft_vocab_has_nan_among_the_least) {
    std::vector<float> row = test::noise(2000, 82);
    for (size_t i = 0; i < row.size(); i += 3) row[i] = std::numeric_limits<float>::quiet_NaN();
    for (size_t i = 1; i < row.size(); i += 5) row[i] = -kInfinity;
    check_draft_vocab(row);
    check_draft_vocab(std::vector<float>(100, std::numeric_limits<float>::quiet_NaN()));
}

CASE(a_chain_takes_the_likeliest_after_the_token_before) {
    for (int64_t rank : {0, 1, 37}) {
        for (int64_t draft_vocab : {0, 1, 50, 299}) {
            const Problem p(300, rank, draft_vocab);
            for (bool own : {false, true}) {
                const Found found = run(p, own);
                CHECK(found.tokens == p.likeliest());
                if (rank) CHECK(found.rows == embedded(p, found.tokens));
            }
        }
    }
}

CASE(a_chain_of_f16_weights) {
    Problem p(500, 48, 60);
    const Found found = run(p, true, nullptr, GGML_TYPE_F16);
    std::ranges::transform(p.w1, p.w1.begin(), test::rounded);
    std::ranges::transform(p.w2, p.w2.begin(), test::rounded);
    CHECK(found.tokens == p.likeliest());
}

CASE(candidates_of_a_chain_are_ascending) {
    const Problem p(300, 16, 40);
    const Found found = run(p, true);
    for (int64_t j = 0; j < p.block; j++) CHECK(part(found.ids, j, 40) == p.candidates(j));
}

CASE(of_equal_logits_a_chain_takes_the_lowest_id) {
    Problem p(300, 0, 40);
    for (float& x : p.base) x = std::min(x, 1.0f);
    CHECK(run(p, true).tokens == p.likeliest());
}

CASE(a_drawn_chain_follows_its_own_tokens) {
    for (int64_t rank : {0, 48}) {
        const Problem p(400, rank, 30);
        ds4::SamplingPolicy policy;
        policy.presence_penalty = 0.5f;
        ds4::Sampler sampler(policy);
        ProposalDraw draw = drawing(sampler, p), history = draw;
        const Found found = run(p, true, &draw);
        for (int64_t j = 0; j < p.block; j++) {
            const std::vector<int32_t> ids = p.candidates(j);
            const std::vector<float> z = p.logits(j, history.history.back());
            const auto wanted = sampler.distribution(z, history.history, ids);
            CHECK_CLOSE(found.q[j], std::vector<float>(wanted.begin(), wanted.end()), 1e-6);
            CHECK(found.tokens[j] == history.token(found.q[j], ids));
        }
        CHECK(draw.history == history.history);
        CHECK(draw.drawn == 5);
        if (rank) CHECK(found.rows == embedded(p, found.tokens));
    }
}

CASE(both_chains_draw_the_same_by_a_greedy_policy) {
    const Problem p(400, 48, 30);
    ds4::SamplingPolicy greedy;  // the same tokens, whatever the order of candidates
    greedy.temperature = 0;
    ds4::Sampler sampler(greedy);
    ProposalDraw one = drawing(sampler, p), other = one;
    CHECK(run(p, true, &one).tokens == run(p, false, &other).tokens);
    CHECK(one.history == other.history);
}

CASE(a_chain_that_cannot_draw_keeps_why) {
    Problem p(400, 48, 30);
    p.base.assign(p.base.size(), -kInfinity);
    for (bool own : {false, true}) {
        ds4::Sampler sampler({});
        ProposalDraw draw = drawing(sampler, p);
        const Found found = run(p, own, &draw);
        CHECK(draw.error != nullptr);
        CHECK(std::ranges::all_of(found.tokens, [](int32_t token) { return token == 0; }));
    }
}
