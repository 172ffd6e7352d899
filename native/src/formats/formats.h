#pragma once
// The number formats of published checkpoints, decoded in one pass. Callers check sizes and scales; nothing is rounded
// beyond the one product of a value and its scale.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ds4::formats {

inline constexpr size_t kFp8Block = 128, kFp4Block = 32;
/// Bytes of a block of ggml's MXFP4.
inline constexpr size_t kMxfp4Bytes = 1 + kFp4Block / 2;

/// What the codes of E4M3 stand for: NaN for 0x7F and 0xFF, nothing is infinite.
extern const std::array<float, 256> kE4m3;

/// out [rows * columns]: E4M3 `codes` of as many rows, times a scale for each 128 elements of a row, the last of which
/// may be fewer; `scales` [rows * ceil(columns / 128)].
void decode_fp8(std::span<const uint8_t> codes, std::span<const float> scales, size_t columns, std::span<float> out);

/// out [32 * blocks]: E2M1 `codes` [16 * blocks], element 2j in the low half of byte j, times E8M0 `scales` [blocks]
/// up to 2^125.
void decode_fp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<float> out);

/// out [17 * blocks]: the same as blocks of ggml's MXFP4, which are the scale and then byte j with element j in its low
/// half and element j + 16 in its high one.
void fp4_to_mxfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<uint8_t> out);

/// The greatest magnitude; infinite or NaN as soon as one value is. 0 for no values.
float greatest_magnitude(std::span<const float> values);

}  // namespace ds4::formats
