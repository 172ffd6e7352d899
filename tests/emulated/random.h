#pragma once
// Random numbers made of integers alone, so that they are the same on every processor.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace emulated {

inline std::mt19937& random() {
    static std::mt19937 generator;
    return generator;
}

/// Between -1 and 1.
inline float random_float() { return static_cast<float>(static_cast<int32_t>(random()())) * 0x1p-31F; }

inline std::vector<float> random_floats(int64_t count, float scale = 1) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& x : out) x = random_float() * scale;
    return out;
}

}  // namespace emulated
