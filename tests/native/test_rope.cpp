// RoPE: (M11), and the frequencies of docs/model.md section 2.3.

#include <algorithm>
#include <numbers>
#include <utility>

#include "check.h"
#include "run_graph.h"

using ds4::ops::Rope;
using test::Graph;

namespace {

constexpr int64_t kDims = 64, kPairs = kDims / 2;
const Rope kMain{kDims, 1e4f};
const Rope kCompressed{kDims, 1.6e5f, 16, 32, 1, 65536};

/// x [size, heads, n] after rope_tail at the given positions.
std::vector<float> rotated(const std::vector<float>& x, int64_t size, int64_t heads,
                           const std::vector<int32_t>& positions, const Rope& rope) {
    Graph g;
    const int64_t n = static_cast<int64_t>(positions.size());
    ggml_tensor* t = g.floats(x, {size, heads, n});
    return g.run(ds4::ops::rope_tail(g.b, t, g.ints(positions, {n}), rope));
}

double ramp_bound(double turns) {
    return kDims * std::log(65536 / (2 * std::numbers::pi * turns)) / (2 * std::log(1.6e5));
}

/// f_i of section 2.3 in double.
double frequency(int64_t i, bool compressed) {
    const double plain = std::pow(compressed ? 1.6e5 : 1e4, -2.0 * i / kDims);
    if (!compressed) return plain;
    const double low = std::max(0.0, std::floor(ramp_bound(32))), high = std::min(63.0, std::ceil(ramp_bound(1)));
    const double m = std::clamp((i - low) / std::max(high - low, 1e-3), 0.0, 1.0);
    return plain * (1 - m) + plain / 16 * m;
}

/// The unit vectors e_0 ... e_63 as 64 heads, rotated at one position: row k is what e_k became.
std::vector<float> rotated_units(int32_t position, const Rope& rope) {
    std::vector<float> x(kDims * kDims);
    for (int64_t k = 0; k < kDims; k++) x[k * kDims + k] = 1;
    return rotated(x, kDims, kDims, {position}, rope);
}

/// Every unit vector turns within its own adjacent pair by position * f_i, and keeps its length.
void check_turns(int32_t position, bool compressed, double tolerance) {
    const std::vector<float> found = rotated_units(position, compressed ? kCompressed : kMain);
    std::vector<double> wanted(kDims * kDims);
    for (int64_t i = 0; i < kPairs; i++) {
        const double angle = position * frequency(i, compressed);
        double* even = &wanted[2 * i * kDims + 2 * i];
        double* odd = &wanted[(2 * i + 1) * kDims + 2 * i];
        even[0] = odd[1] = std::cos(angle);
        even[1] = std::sin(angle);
        odd[0] = -std::sin(angle);
    }
    CHECK_CLOSE(found, wanted, tolerance);
}

void check_frequency(const std::vector<float>& units, int64_t i, double wanted) {
    const float* even = &units[2 * i * kDims + 2 * i];
    CHECK_CLOSE(std::atan2(double(even[1]), double(even[0])) / wanted, 1, 1e-5);
}

double length(const float* x, int64_t size) {
    double sum = 0;
    for (int64_t i = 0; i < size; i++) sum += double(x[i]) * x[i];
    return std::sqrt(sum);
}

}  // namespace

CASE(rope_of_the_spec_vector) {
    const std::vector<float> x{.125f, .25f, .375f, .5f, .625f, .75f, .875f, 1};
    const std::vector<double> wanted{.125, .25, .375, .5, -.7245853, -.6542944, .5403992, 1.2139167};
    CHECK_CLOSE(rotated(x, 8, 1, {3}, {4, 100}), wanted, 3e-7);
}

CASE(rope_frequencies_of_the_table) {
    const std::vector<float> compressed = rotated_units(1, kCompressed);
    const std::pair<int64_t, double> table[] = {{0, 1},
                                                {1, 6.876560e-1},
                                                {14, 5.286856e-3},
                                                {15, 3.635539e-3},
                                                {16, 2.265625e-3},
                                                {20, 2.969778e-4},
                                                {24, 1.953125e-5},
                                                {25, 5.372313e-6},
                                                {31, 5.680529e-7}};
    for (auto [i, f] : table) check_frequency(compressed, i, f);
    check_frequency(rotated_units(1, kMain), 31, 1.333521e-4);
}

CASE(rope_turns_every_pair_at_position_1) {
    check_turns(1, false, 1e-6);
    check_turns(1, true, 1e-6);
}

CASE(rope_turns_every_pair_at_position_1000) {
    // ggml multiplies its way from one frequency to the next: an error of some 1e-7 * i in the angle's factor.
    check_turns(1000, false, 2e-4);
    check_turns(1000, true, 2e-4);
}

CASE(rope_keeps_norms_and_leaves_the_front_alone) {
    constexpr int64_t size = 96, heads = 3, n = 4;
    const std::vector<float> x = test::noise(size * heads * n, 11);
    for (const Rope& rope : {kMain, kCompressed}) {
        const std::vector<float> found = rotated(x, size, heads, {0, 1, 77, 5000}, rope);
        for (int64_t r = 0; r < heads * n; r++) {
            for (int64_t i = 0; i < size - kDims; i++) CHECK(found[r * size + i] == x[r * size + i]);
            CHECK_CLOSE(length(&found[r * size], size) / length(&x[r * size], size), 1, 1e-6);
            CHECK(r < heads || found[r * size + size - kDims] != x[r * size + size - kDims]);
        }
    }
}

CASE(rope_at_negated_positions_is_the_inverse) {
    constexpr int64_t size = 80, heads = 2;
    const std::vector<int32_t> positions{0, 3, 1000, 70000}, negated{0, -3, -1000, -70000};
    const std::vector<float> x = test::noise(size * heads * 4, 12);
    for (const Rope& rope : {kMain, kCompressed}) {
        const std::vector<float> there = rotated(x, size, heads, positions, rope);
        CHECK_CLOSE(rotated(there, size, heads, negated, rope), x, 2e-6);
    }
}

CASE(rms_norm_with_and_without_weight) {
    constexpr int64_t size = 20, rows = 3;
    const std::vector<float> x = test::noise(size * rows, 13), w = test::noise(size, 14);
    Graph g;
    ggml_tensor* t = g.floats(x, {size, rows});
    ggml_tensor* plain = ds4::ops::rms_norm(g.b, t, nullptr, 0.25f);
    ggml_tensor* weighted = ds4::ops::rms_norm(g.b, t, g.floats(w, {size}), 0.25f);
    g.compute({plain, weighted});
    for (int64_t i = 0; i < size * rows; i++) {
        const double norm = length(&x[i / size * size], size);
        const double wanted = x[i] / std::sqrt(norm * norm / size + 0.25);
        CHECK_CLOSE(g.read(plain)[i], wanted, 1e-6);
        CHECK_CLOSE(g.read(weighted)[i], wanted * w[i % size], 2e-6);
    }
}
