// Lightning indexer, (M26), (M29), (M30).

#include <algorithm>
#include <set>

#include "check.h"
#include "graph/blocks.h"
#include "reference.h"
#include "run_graph.h"

using ds4::graph::Logits;
using ds4::graph::Shape;
using test::Graph;

namespace {

/// Scores of n queries in double; -inf where `visible(row, query)` is not so.
template <typename F>
std::vector<double> scores_of(const std::vector<float>& q, const std::vector<float>& keys,
                              const std::vector<float>& weights, int64_t size, int64_t heads, F visible) {
    const int64_t rows = keys.size() / size, n = q.size() / (size * heads);
    std::vector<double> scores(rows * n);
    for (int64_t i = 0; i < rows * n; i++) {
        const int64_t row = i % rows, query = i / rows;
        for (int64_t h = 0; h < heads; h++) {
            double dot = 0;
            for (int64_t c = 0; c < size; c++) dot += double(q[(query * heads + h) * size + c]) * keys[row * size + c];
            scores[i] += weights[query * heads + h] * std::fmax(dot, 0);
        }
        if (!visible(row, query)) scores[i] = -INFINITY;
    }
    return scores;
}

void check_scores(ggml_type type) {
    constexpr int64_t size = 128, heads = 32, rows = 70, n = 5;
    const std::vector<float> q = test::noise(size * heads * n, 40), weights = test::noise(heads * n, 41, 0.02f);
    std::vector<float> keys = test::noise(size * rows, 42), mask(rows * n);
    if (type == GGML_TYPE_F16) std::transform(keys.begin(), keys.end(), keys.begin(), test::rounded);
    auto visible = [](int64_t row, int64_t query) { return row < 13 * query + 3; };
    for (int64_t i = 0; i < rows * n; i++) mask[i] = visible(i % rows, i / rows) ? 0 : -INFINITY;
    Graph g;
    ggml_tensor* scores =
        ds4::ops::index_scores(g.b, g.floats(q, {size, heads, n}), g.floats(keys, {size, rows}, type),
                               g.floats(weights, {heads, n}), g.floats(mask, {rows, n}, GGML_TYPE_F16));
    const std::vector<double> wanted = scores_of(q, keys, weights, size, heads, visible);
    CHECK_CLOSE(g.run(scores), wanted, 2e-5);
    CHECK(*std::min_element(wanted.begin(), wanted.begin() + 3) < 0);  // negative weights do show
}

}  // namespace

CASE(index_scores_with_f32_keys) { check_scores(GGML_TYPE_F32); }
CASE(index_scores_with_f16_keys) { check_scores(GGML_TYPE_F16); }

CASE(index_query_projects_turns_and_scales) {
    ds4::model::Hyperparameters hp = test::small_target();
    constexpr int64_t rank = 10, n = 3, position = 50;
    const int64_t width = hp.index_size * hp.index_heads;
    const std::vector<float> query = test::noise(rank * width, 43), proj = test::noise(hp.hidden * hp.index_heads, 44),
                             r = test::noise(rank * n, 45), h = test::noise(hp.hidden * n, 46);
    const Shape shape = ds4::graph::shape_of(hp, position, n, Logits::none);
    Graph g;
    const ds4::graph::Inputs in = ds4::graph::create_inputs(g.b.ctx, hp, shape);
    ds4::weights::Indexer w{g.floats(query, {rank, width}), g.floats(proj, {hp.hidden, hp.index_heads}), {}};
    const ds4::graph::Context c{g.b, hp, shape, in};
    const auto found = ds4::graph::index_query(c, w, g.floats(r, {rank, n}), g.floats(h, {hp.hidden, n}));
    const std::vector<int32_t> tokens(n);
    g.compute({found.q, found.weights}, [&] { ds4::graph::fill_inputs(in, hp, shape, position, tokens); });
    std::vector<double> q, weights;
    for (int64_t t = 0; t < n; t++) {
        std::vector<double> one = test::matmul(query, rank, width, &r[t * rank]);
        for (int64_t i = 0; i < hp.index_heads; i++) {
            test::compressed_rope(&one[i * hp.index_size], hp.index_size, hp, position + t);
        }
        q.insert(q.end(), one.begin(), one.end());
        for (double v : test::matmul(proj, hp.hidden, hp.index_heads, &h[t * hp.hidden])) {
            weights.push_back(v / std::sqrt(static_cast<double>(width)));
        }
    }
    CHECK_CLOSE(g.read(found.q), q, 2e-5);
    CHECK_CLOSE(g.read(found.weights), weights, 2e-6);
}

CASE(index_choice_is_the_set_of_the_highest) {
    // Queries on both sides of n_vis = top-k, in a block that does not begin at row 0.
    ds4::model::Hyperparameters hp = test::small_target();
    hp.index_heads = 32;
    constexpr int64_t position = 9, n = 100;
    const Shape shape = ds4::graph::shape_of(hp, position, n, Logits::none);
    const std::vector<float> q = test::noise(hp.index_size * hp.index_heads * n, 47),
                             weights = test::noise(hp.index_heads * n, 48),
                             keys = test::noise(hp.index_size * shape.csa_length, 49);
    const std::vector<int32_t> tokens(n);
    auto visible = [](int64_t row, int64_t query) { return row < (position + query + 1) / 4; };
    const std::vector<double> scores = scores_of(q, keys, weights, hp.index_size, hp.index_heads, visible);
    for (size_t i = 0; i < (n + ds4::graph::kAttentionRows - 1) / ds4::graph::kAttentionRows; i++) {
        Graph g;
        const ds4::graph::Inputs in = ds4::graph::create_inputs(g.b.ctx, hp, shape);
        const ds4::graph::Context c{g.b, hp, shape, in};
        const ds4::graph::IndexQuery query{g.floats(q, {hp.index_size, hp.index_heads, n}),
                                           g.floats(weights, {hp.index_heads, n})};
        ggml_tensor* choice =
            ds4::graph::index_choice(c, query, g.floats(keys, {hp.index_size, shape.csa_length}), in.queries[i]);
        g.compute({choice}, [&] { ds4::graph::fill_inputs(in, hp, shape, position, tokens); });
        const std::vector<int32_t> found = g.read_ints(choice);
        for (int64_t row = 0; row < in.queries[i].count; row++) {
            const int64_t t = in.queries[i].first + row;
            std::vector<double> mine(scores.begin() + t * shape.csa_length,
                                     scores.begin() + (t + 1) * shape.csa_length);
            std::set<int32_t> chosen(found.begin() + row * hp.index_top_k, found.begin() + (row + 1) * hp.index_top_k);
            CHECK(static_cast<int64_t>(chosen.size()) == hp.index_top_k);
            for (int64_t k = std::min(hp.index_top_k, (position + t + 1) / 4); k > 0; k--) {
                auto best = std::max_element(mine.begin(), mine.end());
                CHECK(chosen.count(static_cast<int32_t>(best - mine.begin())));
                *best = -INFINITY;
            }
        }
    }
}
