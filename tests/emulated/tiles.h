#pragma once
// Random tiles of every format.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "random.h"

namespace emulated {

using namespace ds4::kernels;

/// A row's scale as F16, far from overflow; the last row's are subnormal.
inline uint16_t random_half(int row) {
    const uint32_t bits = random()(), exponent = row == kTile - 1 ? 0 : 8 + bits / 1024 % 6;
    return static_cast<uint16_t>((bits & 0x83FF) | exponent << 10);
}

/// The upper half of a float.
inline uint16_t random_bf16(int) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(random_float()) >> 16); }

/// A scale as E8M0; the first rows have subnormal ones.
inline uint8_t random_exponent(int row) { return static_cast<uint8_t>((row < 4 ? 0 : 120) + random()() % 4); }

/// Any bytes are values and inner scales; those that are floats are made finite.
template <class Tile>
void make_random(Tile& tile) {
    auto* bytes = reinterpret_cast<uint8_t*>(&tile);
    for (size_t i = 0; i < sizeof tile; i++) bytes[i] = static_cast<uint8_t>(random()());
    for (int row = 0; row < kTile; row++) {
        if constexpr (requires { tile.e; }) {
            tile.e[row] = random_exponent(row);
        } else {
            tile.d[row] = random_half(row);
        }
        if constexpr (requires { tile.dmin; }) tile.dmin[row] = random_half(row);
    }
}

/// The tiles of `rows` rows, of blocks of so many columns.
template <class Tile, int block_columns>
std::vector<std::byte> blocks(int64_t columns, int64_t rows) {
    std::vector<std::byte> bytes(tiles(rows) * (columns / block_columns) * sizeof(Tile));
    for (size_t at = 0; at < bytes.size(); at += sizeof(Tile)) {
        Tile tile;
        make_random(tile);
        std::memcpy(bytes.data() + at, &tile, sizeof tile);
    }
    return bytes;
}

/// Of floats: draw(row) for each row of each column.
template <class Value, class Draw>
std::vector<std::byte> plain(int64_t columns, int64_t rows, const Draw& draw) {
    std::vector<std::byte> bytes(tiles(rows) * columns * kTile * sizeof(Value));
    for (size_t at = 0; at < bytes.size(); at += sizeof(Value)) {
        const Value value = draw(static_cast<int>(at / sizeof(Value) % kTile));
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    return bytes;
}

inline std::vector<std::byte> random_tiles(Format format, int64_t columns, int64_t rows) {
    switch (format) {
        case Format::f32:
            return plain<float>(columns, rows, [](int) { return random_float(); });
        case Format::f16:
            return plain<uint16_t>(columns, rows, random_half);
        case Format::bf16:
            return plain<uint16_t>(columns, rows, random_bf16);
        case Format::q8_0:
            return blocks<TileQ8_0, 32>(columns, rows);
        case Format::q4_0:
            return blocks<TileQ4_0, 32>(columns, rows);
        case Format::mxfp4:
            return blocks<TileMxfp4, 32>(columns, rows);
        case Format::q2_k:
            return blocks<TileQ2_K, 256>(columns, rows);
        case Format::q4_k:
            return blocks<TileQ4_K, 256>(columns, rows);
        case Format::q5_k:
            return blocks<TileQ5_K, 256>(columns, rows);
        case Format::q6_k:
            return blocks<TileQ6_K, 256>(columns, rows);
        case Format::iq2_xxs:
            return blocks<TileIq2Xxs, 256>(columns, rows);
        case Format::iq3_xxs:
            return blocks<TileIq3Xxs, 256>(columns, rows);
    }
    return {};
}

}  // namespace emulated
