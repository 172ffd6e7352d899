#pragma once
// The device's draws in double: the same random bits, and formulas as they stand in launcher.h and in docs/dspark.md.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ds4/sampling.h"
#include "launcher.h"

namespace test {

enum class Drawn : uint32_t { proposal = 1, acceptance = 2, token = 3 };

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Exponentially distributed, from 64 random bits of its own.
inline double exponential(const ds4::kernels::DrawKey& key, Drawn drawn, int row, int index) {
    const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
    const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
    const auto bits = ds4::philox4x32({low(key.counter), high(key.counter), static_cast<uint32_t>(index),
                                       static_cast<uint32_t>(drawn) << 16 | static_cast<uint32_t>(row)},
                                      {low(key.seed), high(key.seed)});
    const uint64_t x = uint64_t{bits[1]} << 32 | bits[0];
    const auto unit = [](uint64_t n) { return (static_cast<double>(n) + 0.5) * 0x1p-64; };
    return x >> 63 ? -std::log(unit(~x)) : -std::log1p(-unit(x));
}

inline double log_sum_exp(std::span<const float> logits, double temperature) {
    double max = -kInfinity, sum = 0;
    for (const float z : logits) max = std::max<double>(max, z);
    for (const float z : logits) sum += std::exp((z - max) / temperature);
    return max / temperature + std::log(sum);
}

/// log of softmax(logits / temperature).
inline std::vector<double> log_softmax(std::span<const float> logits, double temperature) {
    const double sum = log_sum_exp(logits, temperature);
    std::vector<double> log_p;
    for (const float z : logits) log_p.push_back(z / temperature - sum);
    return log_p;
}

/// The margin by which a token misses being drawn: 0 for the winner of weights + Gumbel noise.
inline double missed_by(const std::vector<double>& log_weights, const ds4::kernels::DrawKey& key, Drawn drawn, int row,
                        int32_t token) {
    double best = -kInfinity, own = -kInfinity;
    for (size_t v = 0; v < log_weights.size(); v++) {
        const double score = log_weights[v] - std::log(exponential(key, drawn, row, static_cast<int>(v)));
        best = std::max(best, score);
        if (static_cast<int32_t>(v) == token) own = score;
    }
    return best - own;
}

/// Pearson's statistic of counts against probabilities.
inline double chi_square(const std::vector<int>& counts, const std::vector<double>& p) {
    double total = 0, statistic = 0;
    for (const int n : counts) total += n;
    for (size_t i = 0; i < p.size(); i++) {
        if (p[i] > 0) statistic += (counts[i] - total * p[i]) * (counts[i] - total * p[i]) / (total * p[i]);
        if (p[i] == 0 && counts[i]) return kInfinity;
    }
    return statistic;
}

}  // namespace test
