// Router, experts and their weights, (M31)-(M35).

#include <algorithm>
#include <numeric>

#include "check.h"
#include "graph/blocks.h"
#include "reference.h"
#include "run_graph.h"

using ds4::ops::Routes;
using test::Graph;

namespace {

const std::vector<float> kGate{-12, -3, .5f, 9, 12}, kUp{-15, 2, 10.5f, -3, 11};
const std::vector<double> kClamped{7.373e-4, -.2845552, 3.1122967, -26.9966683, 99.9954602};

std::vector<float> identity(int64_t n, float value = 1) {
    std::vector<float> m(n * n);
    for (int64_t i = 0; i < n; i++) m[i * n + i] = value;
    return m;
}

/// Weights of ne (5, 5) whose product with e_0 is `values`.
std::vector<float> from_first(const std::vector<float>& values) {
    std::vector<float> m(25);
    for (int64_t i = 0; i < 5; i++) m[5 * i] = values[i];
    return m;
}

/// The spec's SwiGLU vector through one routed and the shared expert with the given down matrices.
std::vector<float> spec_vector(float routed, float shared, float clamp_routed, float clamp_shared, float weight = 1) {
    Graph g;
    auto matrix = [&](const std::vector<float>& v) { return g.floats(v, {5, 5}); };
    auto expert = [&](const std::vector<float>& v) { return g.floats(v, {5, 5, 1}); };
    const ds4::ops::MoeWeights w{expert(from_first(kGate)), expert(from_first(kUp)), expert(identity(5, routed)),
                                 matrix(from_first(kGate)), matrix(from_first(kUp)), matrix(identity(5, shared))};
    ggml_tensor* h = g.floats({1, 0, 0, 0, 0}, {5, 1});
    const Routes one{g.ints({0}, {1, 1}), g.floats({weight}, {1, 1})};
    return g.run(ds4::ops::moe(g.b, h, one, w, {clamp_routed, clamp_shared}));
}

void check_relative(const std::vector<float>& found, const std::vector<double>& wanted) {
    for (size_t i = 0; i < wanted.size(); i++) CHECK_CLOSE(found[i] / wanted[i], 1, i ? 1e-6 : 1e-4);
}

double swiglu(double gate, double up, double clamp) {
    if (clamp > 0) {
        gate = std::fmin(gate, clamp);
        up = std::fmin(clamp, std::fmax(-clamp, up));
    }
    return gate / (1 + std::exp(-gate)) * up;
}

struct Options {
    double scale;
    bool normalise;
    float clamp_routed, clamp_shared;
};

/// Six random experts and a shared one, large enough that clamps at 1.5 and 2.5 bite.
struct Rig {
    static constexpr int64_t hidden = 24, width = 40, experts = 6;
    std::vector<float> gate = test::noise(hidden * width * experts, 60, 0.5f);
    std::vector<float> up = test::noise(hidden * width * experts, 61, 0.5f);
    std::vector<float> down = test::noise(hidden * width * experts, 62, 0.3f);
    std::vector<float> shared_gate = test::noise(hidden * width, 63, 0.5f);
    std::vector<float> shared_up = test::noise(hidden * width, 64, 0.5f);
    std::vector<float> shared_down = test::noise(hidden * width, 65, 0.3f);

    ds4::ops::MoeWeights weights(Graph& g) const {
        return {g.floats(gate, {hidden, width, experts}), g.floats(up, {hidden, width, experts}),
                g.floats(down, {width, hidden, experts}), g.floats(shared_gate, {hidden, width}),
                g.floats(shared_up, {hidden, width}),     g.floats(shared_down, {width, hidden})};
    }

    /// (M34) of one expert; -1 is the shared one.
    std::vector<double> expert(int64_t e, const float* h, double clamp) const {
        const bool own = e >= 0;
        std::vector<double> z = test::matmul(own ? gate : shared_gate, hidden, width, h, own ? e * width : 0);
        const std::vector<double> u = test::matmul(own ? up : shared_up, hidden, width, h, own ? e * width : 0);
        for (int64_t i = 0; i < width; i++) z[i] = swiglu(z[i], u[i], clamp);
        return test::matmul(own ? down : shared_down, width, hidden, z.data(), own ? e * hidden : 0);
    }

    /// (M33), (M35) of one row.
    std::vector<double> row(const float* h, const float* scores, const int32_t* chosen, int64_t used,
                            const Options& o) const {
        std::vector<double> y = expert(-1, h, o.clamp_shared);
        double sum = 0;
        for (int64_t k = 0; k < used; k++) sum += scores[chosen[k]];
        for (int64_t k = 0; k < used; k++) {
            const double a = o.scale * scores[chosen[k]] / (o.normalise ? sum : 1);
            const std::vector<double> out = expert(chosen[k], h, o.clamp_routed);
            for (int64_t i = 0; i < hidden; i++) y[i] += a * out[i];
        }
        return y;
    }
};

/// Rows that take what `chosen` says, by tables with a column for each row.
Routes routes_of(Graph& g, const std::vector<float>& scores, const std::vector<int32_t>& chosen, int64_t used,
                 int64_t n, const Options& o) {
    std::vector<int32_t> tokens(n);
    std::iota(tokens.begin(), tokens.end(), 0);
    const int64_t experts = static_cast<int64_t>(scores.size()) / n;
    return ds4::ops::route(g.b, g.floats(scores, {experts, n}),
                           {nullptr, g.ints(chosen, {used, n}), g.ints(tokens, {n})},
                           {used, static_cast<float>(o.scale), o.normalise});
}

void check_moe(int64_t used, int64_t n, const Options& options) {
    const Rig rig;
    const std::vector<float> h = test::noise(Rig::hidden * n, 66);
    std::vector<float> scores = test::noise(Rig::experts * n, 67);
    for (float& s : scores) s = std::fabs(s) + 0.01f;
    std::vector<int32_t> chosen;
    for (int64_t t = 0; t < n; t++) {
        for (int64_t k = 0; k < used; k++) chosen.push_back(static_cast<int32_t>((5 * t + 4 * k + 1) % 6));
    }
    Graph g;
    const Routes routes = routes_of(g, scores, chosen, used, n, options);
    const std::vector<float> found = g.run(ds4::ops::moe(g.b, g.floats(h, {Rig::hidden, n}), routes, rig.weights(g),
                                                         {options.clamp_routed, options.clamp_shared}));
    std::vector<double> wanted;
    for (int64_t t = 0; t < n; t++) {
        const auto y = rig.row(&h[t * Rig::hidden], &scores[t * Rig::experts], &chosen[t * used], used, options);
        wanted.insert(wanted.end(), y.begin(), y.end());
    }
    CHECK_CLOSE(found, wanted, 1e-4);
}

/// moe_block of five rows; what it chose must be what `choose(row, scores)` says.
template <typename F>
void check_block(const std::vector<float>& bias, const std::vector<int32_t>& map, F choose) {
    constexpr int64_t n = 5, used = 3;
    const Rig rig;
    const std::vector<float> h = test::noise(Rig::hidden * n, 68), router = test::noise(Rig::hidden * 6, 69, 0.3f);
    const std::vector<int32_t> tokens{3, 0, 1, 3, 2};
    ds4::model::Hyperparameters hp = test::small_target();
    hp.experts_used = used;
    hp.routed_scale = 1.5f;
    hp.normalise_weights = true;
    hp.clamp_routed = {0, 1.5f};
    hp.clamp_shared = {0, 2.5f};
    Graph g;
    const ds4::ops::MoeWeights e = rig.weights(g);
    ds4::weights::Moe w{};
    w.router = g.floats(router, {Rig::hidden, 6});
    if (!bias.empty()) w.bias = g.floats(bias, {6});
    if (!map.empty()) w.token_map = g.ints(map, {used, 4});
    w.gate = e.gate, w.up = e.up, w.down = e.down;
    w.shared_gate = e.shared_gate, w.shared_up = e.shared_up, w.shared_down = e.shared_down;
    const ds4::graph::Shape shape = ds4::graph::shape_of(hp, 0, n, ds4::graph::Logits::none);
    const ds4::graph::Inputs in{};
    const ds4::graph::Context c{g.b, hp, shape, in};
    const std::vector<float> found =
        g.run(ds4::graph::moe_block(c, w, 1, g.ints(tokens, {n}), g.floats(h, {Rig::hidden, n})));
    std::vector<double> wanted;
    for (int64_t t = 0; t < n; t++) {
        std::vector<float> scores;
        for (double x : test::matmul(router, Rig::hidden, 6, &h[t * Rig::hidden])) {
            scores.push_back(static_cast<float>(std::sqrt(std::log1p(std::exp(x)))));
        }
        const std::vector<int32_t> chosen = choose(tokens[t], scores);
        const auto y = rig.row(&h[t * Rig::hidden], scores.data(), chosen.data(), used, {1.5f, true, 1.5f, 2.5f});
        wanted.insert(wanted.end(), y.begin(), y.end());
    }
    CHECK_CLOSE(found, wanted, 3e-5);
}

}  // namespace

CASE(clamped_swiglu_of_the_routed_expert) { check_relative(spec_vector(1, 0, 10, 0), kClamped); }
CASE(clamped_swiglu_of_the_shared_expert) { check_relative(spec_vector(0, 1, 0, 10), kClamped); }

CASE(swiglu_without_a_clamp) {
    std::vector<double> wanted;
    for (size_t i = 0; i < kGate.size(); i++) wanted.push_back(swiglu(kGate[i], kUp[i], 0));
    check_relative(spec_vector(1, 0, 0, 10), wanted);
    check_relative(spec_vector(0, 1, 10, 0), wanted);
}

CASE(the_shared_expert_is_not_scaled) {
    std::vector<double> wanted;
    for (double v : kClamped) wanted.push_back(3 * v);
    check_relative(spec_vector(1, 1, 10, 10, 2), wanted);
}

CASE(router_scores_of_the_spec_vector) {
    Graph g;
    const std::vector<float> found = g.run(
        ds4::ops::router_scores(g.b, g.floats({-25, 9, -5, 9, 0, 9, 1, 9, 25, 9}, {2, 5}), g.floats({1, 0}, {2, 1})));
    // 4e-6: ggml's softplus has no log1p, so that the first is 0 for 3.7e-6.
    CHECK_CLOSE(found, (std::vector<double>{3.7e-6, .0819472, .8325546, 1.1459763, 5}), 4e-6);
}

CASE(moe_with_one_expert) {
    check_moe(1, 1, {1.5f, true, 1.5f, 2.5f});
    check_moe(1, 5, {1.5f, false, 1.5f, 2.5f});
}

CASE(moe_with_three_experts) {
    check_moe(3, 1, {2.5f, true, 1.5f, 2.5f});
    check_moe(3, 5, {2.5f, true, 1.5f, 2.5f});
    check_moe(3, 5, {2.5f, false, 0, 0});
}

CASE(moe_of_scores_that_are_all_zero_is_the_shared_expert) {
    const Rig rig;
    const std::vector<float> h = test::noise(Rig::hidden, 66), scores(Rig::experts);
    Graph g;
    const Routes routes = routes_of(g, scores, {0, 4}, 2, 1, {1.5f, true, 0, 0});
    const std::vector<float> found =
        g.run(ds4::ops::moe(g.b, g.floats(h, {Rig::hidden, 1}), routes, rig.weights(g), {0, 0}));
    CHECK_CLOSE(found, rig.expert(-1, h.data(), 0), 3e-5);
}

CASE(moe_block_chooses_with_the_bias_and_weighs_without) {
    const std::vector<float> bias{0.9f, -1, 0.2f, -0.4f, 1.1f, 0};
    bool moved = false;
    check_block(bias, {}, [&](int32_t, const std::vector<float>& scores) {
        std::vector<int32_t> order(6), plain(6);
        std::iota(order.begin(), order.end(), 0);
        plain = order;
        auto higher = [&](int32_t a, int32_t b) { return scores[a] + bias[a] > scores[b] + bias[b]; };
        std::sort(order.begin(), order.end(), higher);
        std::sort(plain.begin(), plain.end(), [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
        moved |= std::find(order.begin(), order.begin() + 3, plain[0]) == order.begin() + 3;
        return order;
    });
    CHECK(moved);  // else the bias chose nothing that the scores would not
}

CASE(moe_block_of_a_hash_layer_chooses_by_token) {
    const std::vector<int32_t> map{5, 0, 2, 1, 2, 3, 4, 3, 0, 2, 5, 1};
    check_block({}, map, [&](int32_t token, const std::vector<float>&) {
        return std::vector<int32_t>(map.begin() + 3 * token, map.begin() + 3 * token + 3);
    });
}
