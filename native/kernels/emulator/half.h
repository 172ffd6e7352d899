#pragma once
// Conversion of half precision on the host.

#include <bit>
#include <cstdint>

namespace ds4::emulator {

inline float half_to_float(uint16_t bits) {
    const uint32_t exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    if (exponent == 0) return (sign ? -0x1p-24f : 0x1p-24f) * static_cast<float>(mantissa);
    return std::bit_cast<float>(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13);
}

}  // namespace ds4::emulator
