#pragma once
// Decodes the number formats of published checkpoints, FP8 and FP4, in one pass. Callers check sizes and scales. The
// only rounding is that of the product of a value and its scale.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ds4::formats {

inline constexpr size_t kFp8Block = 128, kFp4Block = 32;
/// Bytes of one block of ggml's MXFP4: a scale and 32 codes of four bits.
inline constexpr size_t kMxfp4Bytes = 1 + kFp4Block / 2;

/// The values of the 256 codes of E4M3 (OCP FP8, "E4M3FN"): 0x7F and 0xFF are NaN, and none is infinite.
extern const std::array<float, 256> kE4m3;

/// Decodes E4M3 `codes` [rows * columns] to `out` of the same shape. `scales` [rows * ceil(columns / 128)] has a factor
/// for each 128 elements of a row; the last group of a row may be shorter.
void decode_fp8(std::span<const uint8_t> codes, std::span<const float> scales, size_t columns, std::span<float> out);

/// Decodes E2M1 `codes` [16 * blocks] to `out` [32 * blocks]. Element 2j of a block is in the low half of byte j.
/// `scales` [blocks] are E8M0, at most 2^125.
void decode_fp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<float> out);

/// Rearranges the same codes and scales to blocks of ggml's MXFP4 in `out` [17 * blocks]: the scale, then byte j with
/// element j in its low half and element j + 16 in its high half.
void fp4_to_mxfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<uint8_t> out);

/// Returns the greatest magnitude. It is infinite or NaN when a value is, and 0 for no values.
float greatest_magnitude(std::span<const float> values);

}  // namespace ds4::formats
