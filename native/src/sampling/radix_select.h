#pragma once
// Finds where to cut a row in descending order, without sorting it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ds4::sampling {

/// The last value that is kept of a row in descending order, and how many of its occurrences are kept (at least 1).
struct Cut {
    float value;
    size_t ties;
};

/// Returns the cut after the `count` largest values (1 <= count <= row size).
Cut cut_at_count(std::span<const float> row, size_t count, std::vector<uint32_t>& scratch);

/// Returns the cut where the sum of the largest values of a non-negative row first reaches `mass`. The largest value,
/// which must be positive, is always kept. A mass beyond the total keeps every positive value.
Cut cut_at_mass(std::span<const float> row, double mass, std::vector<uint32_t>& scratch);

}  // namespace ds4::sampling
