#pragma once
// Where a row in descending order is cut, found without sorting it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds4::sampling {

/// The last value kept of a row in descending order, and how many of its occurrences (at least one) are needed.
struct Cut {
    float value;
    size_t ties;
};

/// Cut after the `count` largest values (1 <= count <= row size).
Cut cut_at_count(std::span<const float> row, size_t count, std::vector<uint32_t>& scratch);

/// Cut where the sum of the largest values of a non-negative row first reaches `mass`; the first value, which must be
/// positive, is always kept, and a mass beyond the total keeps every positive value.
Cut cut_at_mass(std::span<const float> row, double mass, std::vector<uint32_t>& scratch);

}  // namespace ds4::sampling
