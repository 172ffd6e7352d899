#pragma once
// Plain double loops that several tests share.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "model/hyperparameters.h"

namespace test {

/// sum_i w[out][i] x[i] for a weight of ne (in, out), from element `row` * in on.
template <typename X>
std::vector<double> matmul(const std::vector<float>& w, int64_t in, int64_t out, const X* x, int64_t row = 0) {
    std::vector<double> y(out);
    for (int64_t o = 0; o < out; o++) {
        for (int64_t i = 0; i < in; i++) y[o] += double(w[(row + o) * in + i]) * x[i];
    }
    return y;
}

/// RMS norm with weight, in place.
inline void rms_norm(std::vector<double>& x, const std::vector<float>& weight, double epsilon) {
    double squares = 0;
    for (double v : x) squares += v * v;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
    for (size_t i = 0; i < x.size(); i++) x[i] *= scale * weight[i];
}

/// RoPE of a compressed layer on the last components of x, in place (docs/model.md section 2.3).
inline void compressed_rope(double* x, int64_t size, const ds4::model::Hyperparameters& hp, int64_t position) {
    const double dims = static_cast<double>(hp.rope_size), base = hp.compress_rope_base;
    auto bound = [&](double turns) {
        return dims * std::log(hp.yarn_original_context / (2 * std::numbers::pi * turns)) / (2 * std::log(base));
    };
    const double low = std::fmax(0, std::floor(bound(hp.yarn_beta_fast)));
    const double high = std::fmin(dims - 1, std::ceil(bound(hp.yarn_beta_slow)));
    double* tail = x + size - hp.rope_size;
    for (int64_t i = 0; i < hp.rope_size / 2; i++) {
        const double m = std::fmin(1, std::fmax(0, (i - low) / std::fmax(high - low, 1e-3)));
        const double angle = position * std::pow(base, -2 * i / dims) * (1 - m + m / hp.yarn_factor);
        const double even = tail[2 * i], odd = tail[2 * i + 1];
        tail[2 * i] = even * std::cos(angle) - odd * std::sin(angle);
        tail[2 * i + 1] = even * std::sin(angle) + odd * std::cos(angle);
    }
}

}  // namespace test
