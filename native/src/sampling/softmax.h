#pragma once
// The passes over one row of logits that make up a softmax. Sums are in double. Loops are written in lanes, because
// without fast-math a compiler may not reorder a reduction.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

namespace ds4::sampling {

/// Returns e^x for x <= 0 with a relative error below 1e-7: exactly 1 at 0, and 0 below about -87.7 (-inf included),
/// where float has no normal numbers. Clamps integers instead of floats: a comparison of floats may trap, which keeps a
/// loop from vectorising.
inline float exp_nonpositive(float x) {
    // Adding and subtracting 1.5 * 2^23 rounds to an integer in the default rounding mode.
    constexpr float kRounder = 12582912.0f;
    const auto magnitude = std::bit_cast<int32_t>(x) & 0x7FFFFFFF;
    x = -std::bit_cast<float>(std::min(magnitude, std::bit_cast<int32_t>(100.0f)));
    const float n = (x * 1.44269504f + kRounder) - kRounder;
    // ln 2 in two parts: n times the first is exact.
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    // Taylor to r^7: |r| <= ln(2)/2, where the next term is below 1e-8.
    float tail = 1.0f / 5040;
    tail = tail * r + 1.0f / 720;
    tail = tail * r + 1.0f / 120;
    tail = tail * r + 1.0f / 24;
    tail = tail * r + 1.0f / 6;
    tail = tail * r + 0.5f;
    const float mantissa = 1.0f + (r + r * r * tail);
    // A biased exponent of 0 makes the power, and with it the result, zero.
    const int32_t exponent = static_cast<int32_t>(n) + 127;
    return mantissa * std::bit_cast<float>(std::max(exponent, 0) << 23);
}

/// Returns the largest value of a row. Throws BackendError naming the token whose logit is NaN or +inf, and
/// RequestError when the row is empty or -inf throughout.
float checked_max(std::span<const float> row);

/// Returns the lowest index whose value equals `value`, which the row must hold.
int32_t first_index_of(std::span<const float> row, float value);

/// Writes exp((x - max) / temperature) for each x of `row` to `weights`. Subtracting the maximum first keeps any
/// temperature from overflowing. Temperature 1 does no division.
void exponentiate(std::span<const float> row, float max, float temperature, std::span<float> weights);

/// Returns the sum of a row, in double.
double sum(std::span<const float> row);

/// Divides a row by `total`.
void divide(std::span<float> row, double total);

}  // namespace ds4::sampling
