#include <algorithm>
#include <limits>

#include "formats/formats.h"

namespace ds4::formats {

namespace {

/// Returns the value of a code: three bits of mantissa, four of exponent with bias 7, and a sign.
constexpr float e4m3(unsigned code) {
    const unsigned mantissa = code & 7, exponent = code >> 3 & 15;
    float value = exponent == 0 ? static_cast<float>(mantissa) : static_cast<float>(8 + mantissa);
    if ((code & 0x7F) == 0x7F) value = std::numeric_limits<float>::quiet_NaN();
    for (unsigned power = 1; power < exponent; ++power) value *= 2;
    value /= 512;  // the smallest magnitude is 2^-9
    return code & 0x80 ? -value : value;
}

constexpr std::array<float, 256> table() {
    std::array<float, 256> out{};
    for (unsigned code = 0; code < out.size(); ++code) out[code] = e4m3(code);
    return out;
}

}  // namespace

constexpr std::array<float, 256> kE4m3 = table();

void decode_fp8(std::span<const uint8_t> codes, std::span<const float> scales, size_t columns, std::span<float> out) {
    size_t block = 0;
    for (size_t row = 0; row < codes.size(); row += columns) {
        for (size_t first = 0; first < columns; first += kFp8Block, ++block) {
            const size_t begin = row + first, end = row + std::min(first + kFp8Block, columns);
            for (size_t i = begin; i < end; ++i) out[i] = kE4m3[codes[i]] * scales[block];
        }
    }
}

}  // namespace ds4::formats
