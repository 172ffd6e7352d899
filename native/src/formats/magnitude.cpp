#include <algorithm>
#include <bit>

#include "formats/formats.h"

namespace ds4::formats {

float greatest_magnitude(std::span<const float> values) {
    // Without the sign bit, floats order as their bits do as integers; infinity and NaN are above all finite numbers.
    uint32_t greatest = 0;
    for (const float value : values) greatest = std::max(greatest, std::bit_cast<uint32_t>(value) & 0x7FFF'FFFFu);
    return std::bit_cast<float>(greatest);
}

}  // namespace ds4::formats
