// FP8, FP4 and MXFP4 on values worked out by hand; test_convert_formats.py goes through all codes.

#include <limits>

#include "check.h"
#include "formats/formats.h"

namespace formats = ds4::formats;

CASE(fp8_values) {
    const std::vector<uint8_t> codes{0x00, 0x01, 0x07, 0x08, 0x38, 0x39, 0x7E, 0x81, 0xB8, 0xFE};
    const std::vector<double> wanted{0, 0x1p-9, 7 * 0x1p-9, 0x1p-6, 1, 1.125, 448, -0x1p-9, -1, -448};
    for (size_t i = 0; i < codes.size(); i++) CHECK_CLOSE(formats::kE4m3[codes[i]], wanted[i], 0);
    CHECK(std::isnan(formats::kE4m3[0x7F]) && std::isnan(formats::kE4m3[0xFF]) && std::signbit(formats::kE4m3[0x80]));
}

CASE(fp8_scales_of_a_row_that_ends_within_a_block) {
    const size_t columns = 130;
    const std::vector<uint8_t> codes(2 * columns, 0x38);
    const std::vector<float> scales{2, 3, 5, 7};
    std::vector<float> out(codes.size());
    formats::decode_fp8(codes, scales, columns, out);
    CHECK(out[0] == 2 && out[127] == 2 && out[128] == 3 && out[129] == 3);
    CHECK(out[130] == 5 && out[257] == 5 && out[258] == 7 && out[259] == 7);
}

CASE(fp4_values_and_their_order) {
    std::vector<uint8_t> codes(32);
    for (size_t j = 0; j < 16; j++) codes[j] = static_cast<uint8_t>(j | (15 - j) << 4);
    codes[16] = 0x17;
    const std::vector<uint8_t> scales{128, 0};
    std::vector<float> out(64);
    formats::decode_fp4(codes, scales, out);
    const std::vector<double> doubled{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (size_t j = 0; j < 16; j++) {
        CHECK_CLOSE(out[2 * j], doubled[j], 0);
        CHECK_CLOSE(out[2 * j + 1], doubled[15 - j], 0);
    }
    CHECK_CLOSE(out[32], 6 * 0x1p-127, 0);
    CHECK_CLOSE(out[33], 0.5 * 0x1p-127, 0);
}

CASE(mxfp4_pairs_an_element_with_the_one_sixteen_later) {
    std::vector<uint8_t> codes(16);
    for (size_t j = 0; j < 16; j++) codes[j] = static_cast<uint8_t>(j << 4 | (j + 1) % 16);  // elements j + 1, j
    const std::vector<uint8_t> scales{99};
    std::vector<uint8_t> out(17);
    formats::fp4_to_mxfp4(codes, scales, out);
    CHECK(out[0] == 99);
    for (size_t j = 0; j < 8; j++) {
        CHECK(out[1 + 2 * j] == ((j + 1) | (j + 9) % 16 << 4));
        CHECK(out[2 + 2 * j] == (j | (j + 8) << 4));
    }
}

CASE(greatest_magnitude_sees_what_is_not_finite) {
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    using Values = std::vector<float>;
    CHECK(formats::greatest_magnitude(Values{}) == 0);
    CHECK(formats::greatest_magnitude(Values{1, -3, 2}) == 3);
    CHECK(formats::greatest_magnitude(Values{-0.f, 1e-45f}) == 1e-45f);
    CHECK(formats::greatest_magnitude(Values{1, -infinity, 2}) == infinity);
    CHECK(std::isnan(formats::greatest_magnitude(Values{infinity, nan, 2})));
    CHECK(std::isnan(formats::greatest_magnitude(Values{1, -nan})));
}
