#include "sampling/softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "ds4/errors.h"

namespace ds4::sampling {

namespace {

constexpr size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kMagnitude = 0x7FFFFFFF;

struct Extremes {
    float max;
    bool nan;
};

/// Maps the bits of a float to an integer of the same order; the function is its own inverse. Comparing floats may
/// trap, which keeps a loop from vectorising.
int32_t ordered(int32_t bits) { return bits ^ (bits >> 31 & kMagnitude); }

Extremes scan(std::span<const float> row) {
    std::array<int32_t, kLanes> max;
    std::array<int32_t, kLanes> magnitude{};
    max.fill(ordered(std::bit_cast<int32_t>(-kInfinity)));
    const auto see = [&](size_t lane, float x) {
        const auto bits = std::bit_cast<int32_t>(x);
        max[lane] = std::max(max[lane], ordered(bits));
        magnitude[lane] = std::max(magnitude[lane], bits & kMagnitude);
    };
    const size_t whole = row.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) see(lane, row[i + lane]);
    }
    for (size_t i = whole; i < row.size(); ++i) see(i - whole, row[i]);
    const int32_t largest = *std::max_element(max.begin(), max.end());
    // The only magnitudes above infinity are NaNs.
    const bool nan = *std::max_element(magnitude.begin(), magnitude.end()) > std::bit_cast<int32_t>(kInfinity);
    return {std::bit_cast<float>(ordered(largest)), nan};
}

[[noreturn]] void refuse(std::span<const float> row, const char* found, bool (*is_bad)(float)) {
    const auto token = std::find_if(row.begin(), row.end(), is_bad) - row.begin();
    throw BackendError("sampler: the logit of token " + std::to_string(token) + " of " + std::to_string(row.size()) +
                       " is " + found + ", wanted a finite number or -inf; the device or the model file is damaged");
}

}  // namespace

float checked_max(std::span<const float> row) {
    const auto [max, nan] = scan(row);
    if (nan) refuse(row, "NaN", [](float x) { return std::isnan(x); });
    if (max == kInfinity) refuse(row, "+inf", [](float x) { return x == kInfinity; });
    if (max == -kInfinity) {
        throw RequestError("sampler: all " + std::to_string(row.size()) +
                           " logits are -inf, wanted at least one finite; let the bias or mask leave a token");
    }
    return max;
}

int32_t first_index_of(std::span<const float> row, float value) {
    return static_cast<int32_t>(std::find(row.begin(), row.end(), value) - row.begin());
}

void exponentiate(std::span<const float> row, float max, float temperature, std::span<float> weights) {
    if (temperature == 1.0f) {
        for (size_t i = 0; i < row.size(); ++i) weights[i] = exp_nonpositive(row[i] - max);
    } else {
        for (size_t i = 0; i < row.size(); ++i) weights[i] = exp_nonpositive((row[i] - max) / temperature);
    }
}

double sum(std::span<const float> row) {
    std::array<double, kLanes> partial{};
    const size_t whole = row.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) partial[lane] += row[i + lane];
    }
    for (size_t i = whole; i < row.size(); ++i) partial[i - whole] += row[i];
    for (size_t width = kLanes / 2; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
    }
    return partial[0];
}

void divide(std::span<float> row, double total) {
    const auto divisor = static_cast<float>(total);
    for (float& x : row) x /= divisor;
}

}  // namespace ds4::sampling
