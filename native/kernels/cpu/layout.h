#pragma once
// Packed weights. A tile holds 16 rows of a matrix: blocks of 32 columns (256 for the K and I types) one after another,
// each with the rows' scales side by side and then their values. Values come as groups: four neighbouring columns of
// each of the 16 rows, 64 bytes once they are bytes, so that one vector of bytes meets one group of four activations,
// whatever the vector's length. Tiles of floats hold 16 values for each column.

#include <cstdint>

namespace ds4::kernels {

/// Says which of these layouts a file was packed in ahead of time: another layout wants another number.
constexpr int64_t kLayoutVersion = 1;

constexpr int kGroups = 8;       // of four columns, in 32
constexpr int kGroupBytes = 64;  // of 16 rows

struct TileQ8_0 {
    uint16_t d[16];
    int8_t q[kGroups][kGroupBytes];
};

/// Vector j has groups 2j and 2j + 1, in its low and high half bytes.
struct TileQ4_0 {
    uint16_t d[16];
    uint8_t q[kGroups / 2][kGroupBytes];
};

struct TileMxfp4 {
    uint8_t e[16];
    uint8_t q[kGroups / 2][kGroupBytes];
};

/// A tile of 256 columns: eight blocks of 32, each with a scale and a minimum.
struct TileQ4_K {
    uint16_t d[16], dmin[16];
    uint8_t scale[8][16], min[8][16];
    uint8_t q[8][kGroups / 2][kGroupBytes];
};

/// Bit g of a byte of `high` is the fifth bit of the value in group g.
struct TileQ5_K {
    uint16_t d[16], dmin[16];
    uint8_t scale[8][16], min[8][16];
    uint8_t q[8][kGroups / 2][kGroupBytes];
    uint8_t high[8][1][kGroupBytes];
};

/// A scale for 16 columns; byte pairs of bits 2 (g % 4) of high[g / 4] are the upper two bits of group g.
struct TileQ6_K {
    uint16_t d[16];
    int8_t scale[16][16];
    uint8_t q[8][kGroups / 2][kGroupBytes];
    uint8_t high[8][2][kGroupBytes];
};

/// Scale (low half byte) and minimum (high) for 16 columns; values as in TileQ6_K's `high`.
struct TileQ2_K {
    uint16_t d[16], dmin[16];
    uint8_t scale[16][16];
    uint8_t q[8][2][kGroupBytes];
};

/// IQ2_XXS: each row has four entries of a codebook of eight values, and 4 x 7 sign bits under a scale of 4 bits.
struct TileIq2Xxs {
    uint16_t d[16];
    struct {
        uint8_t entry[16][4];
        uint32_t signs[16];
    } sub[8];
};

/// IQ3_XXS: as TileIq2Xxs, with eight entries of four values.
struct TileIq3Xxs {
    uint16_t d[16];
    struct {
        uint8_t entry[16][8];
        uint32_t signs[16];
    } sub[8];
};

}  // namespace ds4::kernels
