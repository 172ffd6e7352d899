#include <bit>

#include "formats/formats.h"

namespace ds4::formats {

namespace {

/// The values of the codes of E2M1.
constexpr std::array<float, 16> kE2m1{0, .5, 1, 1.5, 2, 3, 4, 6, -0.f, -.5, -1, -1.5, -2, -3, -4, -6};

/// Returns a table of the two values in each byte, the low half's first, so that one look-up decodes both.
constexpr std::array<std::array<float, 2>, 256> pairs() {
    std::array<std::array<float, 2>, 256> out{};
    for (size_t byte = 0; byte < out.size(); ++byte) out[byte] = {kE2m1[byte & 15], kE2m1[byte >> 4]};
    return out;
}

constexpr std::array<std::array<float, 2>, 256> kPairs = pairs();

/// Returns 2^(code - 127) for codes below 255. The code is the exponent of an F32, except that 2^-127 is subnormal.
float e8m0(uint8_t code) {
    const uint32_t smallest = 0x0040'0000;
    return std::bit_cast<float>(code == 0 ? smallest : static_cast<uint32_t>(code) << 23);
}

}  // namespace

void decode_fp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<float> out) {
    for (size_t block = 0; block < scales.size(); ++block) {
        const uint8_t* in = &codes[block * kFp4Block / 2];
        float* to = &out[block * kFp4Block];
        const float scale = e8m0(scales[block]);
        for (size_t j = 0; j < kFp4Block / 2; ++j) {
            const auto [low, high] = kPairs[in[j]];
            to[2 * j] = low * scale;
            to[2 * j + 1] = high * scale;
        }
    }
}

void fp4_to_mxfp4(std::span<const uint8_t> codes, std::span<const uint8_t> scales, std::span<uint8_t> out) {
    for (size_t block = 0; block < scales.size(); ++block) {
        const uint8_t* first = &codes[block * kFp4Block / 2];
        const uint8_t* second = first + kFp4Block / 4;
        uint8_t* to = &out[block * kMxfp4Bytes];
        *to++ = scales[block];
        for (size_t j = 0; j < kFp4Block / 4; ++j) {
            *to++ = static_cast<uint8_t>((first[j] & 15) | second[j] << 4);
            *to++ = static_cast<uint8_t>(first[j] >> 4 | (second[j] & 0xF0));
        }
    }
}

}  // namespace ds4::formats
