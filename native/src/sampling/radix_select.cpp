#include "sampling/radix_select.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace ds4::sampling {

namespace {

// Radix selection over order-preserving keys, in three levels of at most 11 bits from the most significant down. Each
// level sums the weights by digit and continues in the digit where the running sum reaches the target. The cost is
// linear for any distribution, and the last level leaves one value.
struct Level {
    int shift;
    uint32_t mask;
};
constexpr std::array<Level, 3> kLevels{{{21, 0x7FF}, {10, 0x7FF}, {0, 0x3FF}}};
constexpr uint32_t kSign = 0x80000000u;

/// Returns an unsigned key with the order of the floats. -0 comes before +0, which no comparison with the cut's value
/// can tell.
uint32_t key_of(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    return bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | kSign);
}

float value_of(uint32_t key) { return std::bit_cast<float>(key & kSign ? key ^ kSign : ~key); }

/// The digit in which the running weight reaches the target, and the weight above that digit.
struct Step {
    uint32_t digit;
    double above;
};

Step descend(std::span<const double> weights, double above, double target) {
    Step last{0, above};
    for (size_t digit = weights.size(); digit-- > 0;) {
        if (weights[digit] == 0) continue;
        last = {static_cast<uint32_t>(digit), above};
        above += weights[digit];
        if (above >= target) break;
    }
    return last;
}

template <typename Weight>
Cut select(std::span<const float> row, double target, Weight weight, std::vector<uint32_t>& keys) {
    keys.resize(row.size());
    std::transform(row.begin(), row.end(), keys.begin(), key_of);
    double above = 0;
    size_t count = keys.size();
    for (const auto [shift, mask] : kLevels) {
        std::array<double, 0x800> weights{};
        for (size_t i = 0; i < count; ++i) weights[keys[i] >> shift & mask] += weight(keys[i]);
        const Step step = descend(weights, above, target);
        above = step.above;
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i) {
            const uint32_t key = keys[i];
            keys[kept] = key;
            kept += (key >> shift & mask) == step.digit;
        }
        count = kept;
    }
    const double needed = std::ceil((target - above) / weight(keys[0]));
    return {value_of(keys[0]), static_cast<size_t>(std::clamp(needed, 1.0, static_cast<double>(count)))};
}

}  // namespace

Cut cut_at_count(std::span<const float> row, size_t count, std::vector<uint32_t>& scratch) {
    return select(row, static_cast<double>(count), [](uint32_t) { return 1.0; }, scratch);
}

Cut cut_at_mass(std::span<const float> row, double mass, std::vector<uint32_t>& scratch) {
    return select(row, mass, [](uint32_t key) { return static_cast<double>(value_of(key)); }, scratch);
}

}  // namespace ds4::sampling
