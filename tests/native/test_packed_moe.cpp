// The MoE's nodes of packed weights against ggml's operations on the same weights, and the bits of their rows.

#include <cstring>

#include "check.h"
#include "packed_weights.h"

using ds4::ops::Routes;
using test::Graph;
using test::PackedWeights;

namespace {

constexpr int64_t kExperts = 7, kUsed = 3, kRows = 13;

struct Rig {
    int64_t hidden, width;
    PackedWeights gate, up, down, shared_gate, shared_up, shared_down, router;
    std::vector<float> h, bias = test::noise(kExperts, 9, 0.2f);

    Rig(int64_t hidden, int64_t width, ggml_type routed, ggml_type shared)
        : hidden(hidden),
          width(width),
          gate(hidden, width, kExperts, false, routed, 1, 0.3f),
          up(hidden, width, kExperts, false, routed, 2, 0.3f),
          down(width, hidden, kExperts, false, routed, 3, 0.3f),
          shared_gate(hidden, width, 1, true, shared, 4, 0.3f),
          shared_up(hidden, width, 1, true, shared, 5, 0.3f),
          shared_down(width, hidden, 1, true, shared, 6, 0.3f),
          router(hidden, kExperts, 1, true, GGML_TYPE_F32, 7, 0.3f),
          h(test::noise(hidden * kRows, 8)) {}

    Routes routes(Graph& g, PackedWeights::Form form, ggml_tensor* x) const {
        g.b.choice = ds4::kernels::KernelChoice::of_cpu(form == PackedWeights::Form::packed);
        ggml_tensor* scores = ds4::ops::router_scores(g.b, router.in(form), x);
        return ds4::ops::route(g.b, scores, {g.floats(bias, {kExperts}), nullptr, nullptr}, {kUsed, 1.5f, true});
    }

    /// The MoE of rows [first, first + n).
    std::vector<float> run(PackedWeights::Form form, int64_t first, int64_t n) const {
        Graph g;
        const std::vector<float> rows(h.begin() + first * hidden, h.begin() + (first + n) * hidden);
        ggml_tensor* x = g.floats(rows, {hidden, n});
        const ds4::ops::MoeWeights w{gate.in(form),        up.in(form),        down.in(form),
                                     shared_gate.in(form), shared_up.in(form), shared_down.in(form)};
        return g.run(ds4::ops::moe(g.b, x, routes(g, form, x), w, {1.5f, 2.5f}));
    }
};

double apart(const std::vector<float>& found, const std::vector<float>& wanted) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < wanted.size(); i++) {
        difference += std::pow(found[i] - wanted[i], 2);
        size += std::pow(wanted[i], 2);
    }
    return std::sqrt(difference / size);
}

/// Against products of floats, and no further from them than ggml's. A block of 32 normal numbers loses about 0.5 % to
/// its 8 bits; gate, up and down together lose about 1 %.
void check_moe(int64_t hidden, int64_t width, ggml_type routed, ggml_type shared, double tolerance) {
    const Rig rig(hidden, width, routed, shared);
    const std::vector<float> all = rig.run(PackedWeights::Form::packed, 0, kRows),
                             exact = rig.run(PackedWeights::Form::exact, 0, kRows);
    CHECK_CLOSE(apart(all, exact), 0, tolerance);
    CHECK(apart(all, exact) < 1.2 * apart(rig.run(PackedWeights::Form::plain, 0, kRows), exact) + 1e-6);
    for (int64_t n : {1, 2, 5}) {
        for (int64_t first = 0; first + n <= kRows; first += n) {
            const std::vector<float> some = rig.run(PackedWeights::Form::packed, first, n);
            CHECK(!std::memcmp(some.data(), &all[first * hidden], some.size() * sizeof(float)));
        }
    }
}

}  // namespace

CASE(moe_of_packed_floats) {
    check_moe(40, 72, GGML_TYPE_F32, GGML_TYPE_F32, 1e-6);
    check_moe(40, 24, GGML_TYPE_F32, GGML_TYPE_F16, 1e-6);
}

CASE(moe_of_packed_quantised_weights) {
    check_moe(96, 64, GGML_TYPE_Q8_0, GGML_TYPE_Q8_0, 0.015);
    check_moe(96, 96, GGML_TYPE_MXFP4, GGML_TYPE_Q8_0, 0.015);
    check_moe(256, 256, GGML_TYPE_Q4_K, GGML_TYPE_Q6_K, 0.015);
}

CASE(moe_of_packed_weights_in_both_forms) {
    check_moe(96, 96, GGML_TYPE_F32, GGML_TYPE_Q8_0, 0.015);
    check_moe(96, 96, GGML_TYPE_Q4_0, GGML_TYPE_F32, 0.015);
}

CASE(own_routes_are_ggmls) {
    const Rig rig(40, 24, GGML_TYPE_F32, GGML_TYPE_F32);
    Graph own, other;
    const Routes found = rig.routes(own, PackedWeights::Form::packed, own.floats(rig.h, {40, kRows})),
                 wanted = rig.routes(other, PackedWeights::Form::plain, other.floats(rig.h, {40, kRows}));
    own.compute({found.experts, found.weights});
    other.compute({wanted.experts, wanted.weights});
    std::vector<std::vector<float>> weights(2, std::vector<float>(kExperts * kRows));
    for (int64_t i = 0; i < kUsed * kRows; i++) {
        const int64_t row = i / kUsed * kExperts;
        weights[0][row + own.read_ints(found.experts)[i]] = own.read(found.weights)[i];
        weights[1][row + other.read_ints(wanted.experts)[i]] = other.read(wanted.weights)[i];
    }
    CHECK_CLOSE(weights[0], weights[1], 1e-6);
}

CASE(of_experts_with_equal_scores_the_first_are_chosen) {
    Graph g;
    g.b.choice = ds4::kernels::KernelChoice::of_cpu(true);
    const std::vector<float> scores{1, 2, 1, 2, 1, 1}, none(6);
    const Routes r =
        ds4::ops::route(g.b, g.floats(scores, {6, 1}), {g.floats(none, {6}), nullptr, nullptr}, {4, 3, true});
    g.compute({r.experts, r.weights});
    CHECK(g.read_ints(r.experts) == (std::vector<int32_t>{0, 1, 2, 3}));
    CHECK_CLOSE(g.read(r.weights), (std::vector<double>{.5, 1, .5, 1}), 1e-6);
}

CASE(own_routes_by_token_are_the_tables) {
    Graph g;
    g.b.choice = ds4::kernels::KernelChoice::of_cpu(true);
    const std::vector<float> scores{1, 2, 3, 4, 5, 6};
    const Routes r = ds4::ops::route(g.b, g.floats(scores, {3, 2}),
                                     {nullptr, g.ints({0, 1, 2, 0, 1, 2}, {2, 3}), g.ints({2, 1}, {2})}, {2, 1, false});
    g.compute({r.experts, r.weights});
    CHECK(g.read_ints(r.experts) == (std::vector<int32_t>{1, 2, 2, 0}));
    CHECK_CLOSE(g.read(r.weights), (std::vector<double>{2, 3, 6, 4}), 1e-6);
}
