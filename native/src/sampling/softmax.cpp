#include "sampling/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "ds4/errors.h"

namespace ds4::sampling {

namespace {

constexpr size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Extremes {
    float max;
    bool nan;
};

Extremes scan(std::span<const float> row) {
    std::array<float, kLanes> max;
    std::array<int32_t, kLanes> nan{};
    max.fill(-kInfinity);
    const size_t whole = row.size() / kLanes * kLanes;
    for (size_t i = 0; i < whole; i += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
            const float x = row[i + lane];
            max[lane] = x > max[lane] ? x : max[lane];
            nan[lane] |= x != x;
        }
    }
    for (size_t i = whole; i < row.size(); ++i) {
        max[0] = row[i] > max[0] ? row[i] : max[0];
        nan[0] |= row[i] != row[i];
    }
    return {*std::max_element(max.begin(), max.end()), *std::max_element(nan.begin(), nan.end()) != 0};
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

double exponentiate(std::span<float> row, float max, float temperature) {
    if (temperature == 1.0f) {
        for (float& x : row) x = exp_nonpositive(x - max);
    } else {
        for (float& x : row) x = exp_nonpositive((x - max) / temperature);
    }
    return sum(row);
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
