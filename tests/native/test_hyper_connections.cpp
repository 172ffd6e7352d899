// Hyper-connections, (M2)-(M10) and (M36) of docs/model.md.

#include <array>

#include "check.h"
#include "run_graph.h"

using ds4::ops::HcMix;
using ds4::ops::HcOptions;
using ds4::ops::HcWeights;
using test::Graph;

namespace {

using Comb = std::array<double, 16>;  // [source][destination]
constexpr Comb kEasy{.1, -.4, 1.2, .3, 2, .5, -1, 0, -.7, .9, .2, -.3, .4, .4, -2, 1.5};
constexpr Comb kHard{20, 0, 0, 0, 20, 0, 0, 0, 0, 20, 0, 10, 0, 0, 20, 0};
constexpr int64_t kHidden = 8, kStreams = 4, kMix = 24;

void normalise(Comb& c, int stride, int other, double epsilon) {
    for (int i = 0; i < 4; i++) {
        double sum = epsilon;
        for (int j = 0; j < 4; j++) sum += c[i * other + j * stride];
        for (int j = 0; j < 4; j++) c[i * other + j * stride] /= sum;
    }
}

/// (M7) in double.
Comb sinkhorn(Comb c, int iterations, double epsilon) {
    for (int a = 0; a < 4; a++) {
        double sum = 0;
        for (int b = 0; b < 4; b++) sum += std::exp(c[4 * a + b]);
        for (int b = 0; b < 4; b++) c[4 * a + b] = std::exp(c[4 * a + b]) / sum + epsilon;
    }
    normalise(c, 4, 1, epsilon);
    for (int i = 1; i < iterations; i++) {
        normalise(c, 1, 4, epsilon);
        normalise(c, 4, 1, epsilon);
    }
    return c;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Streams of +-1, whose flattened RMS norm is themselves; component 0 is 1.
ggml_tensor* unit_streams(Graph& g, int64_t rows) {
    std::vector<float> x(kHidden * kStreams * rows);
    for (size_t i = 0; i < x.size(); i++) x[i] = i % 3 ? -1.0f : 1.0f;
    for (int64_t r = 0; r < rows; r++) x[r * kHidden * kStreams] = 1;
    return g.floats(x, {kHidden, kStreams, rows});
}

/// Weights that give the logits mixed * scale + base at streams from unit_streams(): fn reads component 0 alone.
HcWeights weights_of(Graph& g, const std::vector<float>& mixed, const std::vector<float>& scale,
                     const std::vector<float>& base) {
    const int64_t rows = static_cast<int64_t>(mixed.size());
    std::vector<float> fn(kHidden * kStreams * rows);
    for (int64_t k = 0; k < rows; k++) fn[k * kHidden * kStreams] = mixed[k];
    return {g.floats(fn, {kHidden * kStreams, rows}), g.floats(base, {rows}),
            g.floats(scale, {static_cast<int64_t>(scale.size())})};
}

/// The combination matrix of the given logits, half of each from fn and half from base.
std::vector<float> comb_of(const Comb& logits, int iterations) {
    Graph g;
    std::vector<float> mixed(kMix), base(kMix);
    for (int i = 0; i < 16; i++) {
        mixed[8 + i] = static_cast<float>(logits[i] / 4);
        base[8 + i] = static_cast<float>(logits[i] / 2);
    }
    const HcWeights w = weights_of(g, mixed, {5, 7, 2}, base);
    return g.run(ds4::ops::hc_mix(g.b, unit_streams(g, 1), w, {iterations, 1e-6f, 0}).comb);
}

struct Mixed {
    std::vector<float> pre, post, comb;
};

/// hc_mix of two rows with logits -6 .. -2 for pre and post: small values, so that an epsilon shows.
Mixed mixed_of_small_gates(float epsilon, std::vector<double>& logits) {
    Graph g;
    std::vector<float> mixed(kMix), base(kMix);
    logits.assign(8, 0);
    for (int i = 0; i < 8; i++) {
        mixed[i] = -1.0f - 0.125f * i;
        base[i] = -0.25f * i;
        logits[i] = mixed[i] * (i < 4 ? 4.0 : 2.0) + base[i];
    }
    const HcWeights w = weights_of(g, mixed, {4, 2, 1}, base);
    const HcMix mix = ds4::ops::hc_mix(g.b, unit_streams(g, 2), w, {20, epsilon, 0});
    g.compute({mix.pre, mix.post, mix.comb});
    return {g.read(mix.pre), g.read(mix.post), g.read(mix.comb)};
}

}  // namespace

CASE(sinkhorn_of_the_easy_vector) {
    const std::vector<double> wanted{.1183269, .0969270, .6109621, .1737830, .6453043, .1944607, .0552206, .1050134,
                                     .0729372, .4878919, .3083329, .1308370, .1634306, .2207193, .0254834, .5903657};
    CHECK_CLOSE(comb_of(kEasy, 20), wanted, 3e-7);
    std::vector<float> once = comb_of(kEasy, 1);
    once.resize(4);
    CHECK_CLOSE(once, (std::vector<double>{.1454568, .1084681, .6307934, .2002570}), 3e-7);
}

CASE(sinkhorn_of_the_hard_vector_tells_iterations_apart) {
    CHECK_CLOSE(comb_of(kHard, 20)[11], .0375048, 1e-6);
    CHECK_CLOSE(comb_of(kHard, 20)[3], .4733964, 1e-6);
    CHECK_CLOSE(comb_of(kHard, 19)[11], .0399347, 1e-6);
    CHECK_CLOSE(comb_of(kHard, 21)[11], .0353524, 1e-6);
}

CASE(sinkhorn_matches_double) {
    for (const Comb& logits : {kEasy, kHard}) {
        for (int iterations : {1, 2, 3, 20}) {
            const Comb wanted = sinkhorn(logits, iterations, 1e-6f);
            CHECK_CLOSE(comb_of(logits, iterations), std::vector<double>(wanted.begin(), wanted.end()), 1e-6);
        }
    }
}

CASE(pre_has_the_epsilon_and_post_the_factor) {
    std::vector<double> logits;
    for (float epsilon : {1e-6f, 1e-3f}) {
        const Mixed m = mixed_of_small_gates(epsilon, logits);
        for (int row = 0; row < 2; row++) {
            for (int s = 0; s < 4; s++) {
                CHECK_CLOSE(m.pre[4 * row + s], sigmoid(logits[s]) + epsilon, 1e-7);
                CHECK_CLOSE(m.post[4 * row + s], 2 * sigmoid(logits[4 + s]), 1e-7);
            }
        }
    }
}

CASE(the_mix_reads_the_norm_of_all_streams) {
    constexpr int64_t rows = 3, flat = kHidden * kStreams;
    const std::vector<float> x = test::noise(flat * rows, 1, 3), fn = test::noise(flat * kMix, 2, 0.3f);
    Graph g;
    const HcWeights w{g.floats(fn, {flat, kMix}), g.floats(std::vector<float>(kMix), {kMix}), g.floats({1, 1, 1}, {3})};
    const std::vector<float> pre =
        g.run(ds4::ops::hc_mix(g.b, g.floats(x, {kHidden, kStreams, rows}), w, {20, 1e-6f, 0.5f}).pre);
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = 0; i < flat; i++) squares += double(x[r * flat + i]) * x[r * flat + i];
        for (int64_t s = 0; s < kStreams; s++) {
            double m = 0;
            for (int64_t i = 0; i < flat; i++) m += double(fn[s * flat + i]) * x[r * flat + i];
            CHECK_CLOSE(pre[r * kStreams + s], sigmoid(m / std::sqrt(squares / flat + 0.5)) + 1e-6, 1e-6);
        }
    }
}

CASE(the_head_mixes_with_one_scale) {
    Graph g;
    const std::vector<float> mixed{-1, -2, 0.5f, 1}, base{-1, 0.25f, -3, -4};
    const HcWeights w = weights_of(g, mixed, {3}, base);
    const HcMix mix = ds4::ops::hc_head_mix(g.b, unit_streams(g, 2), w, {20, 1e-6f, 0});
    CHECK(!mix.post && !mix.comb);
    const std::vector<float> pre = g.run(mix.pre);
    for (int i = 0; i < 8; i++) CHECK_CLOSE(pre[i], sigmoid(mixed[i % 4] * 3 + base[i % 4]) + 1e-6, 1.5e-7);
}

CASE(collapse_weighs_the_streams) {
    constexpr int64_t rows = 5;
    const std::vector<float> x = test::noise(kHidden * kStreams * rows, 3), pre = test::noise(kStreams * rows, 4);
    Graph g;
    const std::vector<float> found =
        g.run(ds4::ops::hc_collapse(g.b, g.floats(x, {kHidden, kStreams, rows}), g.floats(pre, {kStreams, rows})));
    std::vector<double> wanted(kHidden * rows);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t s = 0; s < kStreams; s++) {
            for (int64_t i = 0; i < kHidden; i++) {
                wanted[r * kHidden + i] += double(pre[r * kStreams + s]) * x[(r * kStreams + s) * kHidden + i];
            }
        }
    }
    CHECK_CLOSE(found, wanted, 2e-6);
}

CASE(expand_sums_over_the_source_streams) {
    constexpr int64_t rows = 5;
    const std::vector<float> x = test::noise(kHidden * kStreams * rows, 5), y = test::noise(kHidden * rows, 6),
                             post = test::noise(kStreams * rows, 7), comb = test::noise(16 * rows, 8);
    Graph g;
    const HcMix mix{nullptr, g.floats(post, {kStreams, rows}), g.floats(comb, {kStreams, kStreams, rows})};
    const std::vector<float> found =
        g.run(ds4::ops::hc_expand(g.b, g.floats(y, {kHidden, rows}), g.floats(x, {kHidden, kStreams, rows}), mix));
    std::vector<double> wanted(x.size());
    for (size_t i = 0; i < wanted.size(); i++) {
        const int64_t r = i / (kHidden * kStreams), to = i / kHidden % kStreams, c = i % kHidden;
        wanted[i] = double(post[r * kStreams + to]) * y[r * kHidden + c];
        for (int64_t from = 0; from < kStreams; from++) {
            wanted[i] += double(comb[r * 16 + from * 4 + to]) * x[(r * kStreams + from) * kHidden + c];
        }
    }
    CHECK_CLOSE(found, wanted, 3e-6);
}

CASE(mix_and_expand_agree_on_the_axes_of_comb) {
    // X'_b = sum_a C[a,b] X_a with C of the easy vector and post closed: only the transposed use gives this.
    Graph g;
    std::vector<float> mixed(kMix), base(kMix, -100.0f);
    for (int i = 0; i < 16; i++) {
        mixed[8 + i] = static_cast<float>(kEasy[i]);
        base[8 + i] = 0;
    }
    ggml_tensor* x = unit_streams(g, 1);
    const HcMix mix = ds4::ops::hc_mix(g.b, x, weights_of(g, mixed, {1, 1, 1}, base), {20, 1e-6f, 0});
    std::vector<float> streams = test::noise(kHidden * kStreams, 9);
    ggml_tensor* y = g.floats(test::noise(kHidden, 10), {kHidden});
    const std::vector<float> found = g.run(ds4::ops::hc_expand(g.b, y, g.floats(streams, {kHidden, kStreams, 1}), mix));
    const Comb comb = sinkhorn(kEasy, 20, 1e-6);
    for (int64_t i = 0; i < kHidden * kStreams; i++) {
        double wanted = 0;
        for (int64_t from = 0; from < 4; from++) {
            wanted += comb[from * 4 + i / kHidden] * streams[from * kHidden + i % kHidden];
        }
        CHECK_CLOSE(found[i], wanted, 2e-6);
    }
}
