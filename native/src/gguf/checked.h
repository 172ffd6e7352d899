#pragma once
// Overflow-checked arithmetic on sizes from a file: nullopt when the result would not fit into 64 bits.

#include <cstdint>
#include <optional>

namespace ds4::gguf {

inline std::optional<uint64_t> checked_add(uint64_t a, uint64_t b) {
    if (b > UINT64_MAX - a) return std::nullopt;
    return a + b;
}

inline std::optional<uint64_t> checked_mul(uint64_t a, uint64_t b) {
    if (a != 0 && b > UINT64_MAX / a) return std::nullopt;
    return a * b;
}

/// Rounds `value` up to a multiple of `alignment`, a power of two.
inline std::optional<uint64_t> checked_align(uint64_t value, uint64_t alignment) {
    const auto sum = checked_add(value, alignment - 1);
    if (!sum) return std::nullopt;
    return *sum & ~(alignment - 1);
}

}  // namespace ds4::gguf
