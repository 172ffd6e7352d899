#pragma once
// The few greatest values of a long row, without looking at most of it twice.

#include <cstdint>
#include <span>

namespace ds4::ops::cpu {

/// Writes where the out.size() greatest values of the row are, ascending; 1 <= out.size() <= row.size(). Of equal
/// values the first are taken, and a NaN counts as -inf.
void likeliest_tokens(std::span<const float> row, std::span<int32_t> out);

}  // namespace ds4::ops::cpu
