#include "cpu/packing.h"

#include <array>
#include <cstring>

#include "cpu/layout.h"

#define GGML_COMMON_DECL_C
#include "ggml-common.h"

namespace ds4::kernels {
namespace {

/// A row's values in 32 columns, a byte each, four to a word: word g is group g.
using Words = std::array<uint32_t, kGroups>;

uint32_t word(const void* bytes) {
    uint32_t out;
    std::memcpy(&out, bytes, sizeof out);
    return out;
}

/// The low `bits` of each byte at `bytes` shifted right by `shift`.
template <int bits>
Words cut(const uint8_t* bytes, int shift) {
    Words out;
    for (int g = 0; g < kGroups; g++) out[g] = word(bytes + 4 * g) >> shift & 0x0101'0101U * ((1 << bits) - 1);
    return out;
}

/// Adds a row's values of so many bits to vectors that hold 8 / bits groups a byte.
template <int bits, size_t vectors>
void place(uint8_t (&q)[vectors][kGroupBytes], int row, const Words& values) {
    constexpr int per_byte = 8 / bits;
    static_assert(vectors * per_byte == kGroups);
    for (int g = 0; g < kGroups; g++) {
        uint8_t* at = q[g / per_byte] + 4 * row;
        const uint32_t both = word(at) | values[g] << bits * (g % per_byte);
        std::memcpy(at, &both, sizeof both);
    }
}

/// Sixteen bytes of two values, those of columns 0 to 15 in the low halves.
Words half_bytes(const uint8_t* q) {
    Words out;
    for (int g = 0; g < kGroups / 2; g++) {
        out[g] = word(q + 4 * g) & 0x0F0F'0F0FU;
        out[g + kGroups / 2] = word(q + 4 * g) >> 4 & 0x0F0F'0F0FU;
    }
    return out;
}

void pack(TileQ8_0& tile, int row, const block_q8_0& block) {
    tile.d[row] = block.d;
    for (int g = 0; g < kGroups; g++) std::memcpy(tile.q[g] + 4 * row, block.qs + 4 * g, 4);
}

void pack(TileQ4_0& tile, int row, const block_q4_0& block) {
    tile.d[row] = block.d;
    place<4>(tile.q, row, half_bytes(block.qs));
}

void pack(TileMxfp4& tile, int row, const block_mxfp4& block) {
    tile.e[row] = block.e;
    place<4>(tile.q, row, half_bytes(block.qs));
}

/// Scale and minimum of block `sub`, of six bits each.
std::array<uint8_t, 2> six_bits(const uint8_t* scales, int sub) {
    if (sub < 4) return {static_cast<uint8_t>(scales[sub] & 63), static_cast<uint8_t>(scales[sub + 4] & 63)};
    const uint8_t low = scales[sub + 4];
    return {static_cast<uint8_t>((low & 15) | (scales[sub - 4] >> 6) << 4),
            static_cast<uint8_t>(low >> 4 | (scales[sub] >> 6) << 4)};
}

template <class Tile, class Block>
void pack_scaled(Tile& tile, int row, const Block& block) {
    tile.d[row] = block.d;
    tile.dmin[row] = block.dmin;
    for (int sub = 0; sub < 8; sub++) {
        const auto [scale, min] = six_bits(block.scales, sub);
        tile.scale[sub][row] = scale;
        tile.min[sub][row] = min;
        place<4>(tile.q[sub], row, cut<4>(block.qs + sub / 2 * 32, 4 * (sub % 2)));
    }
}

void pack(TileQ4_K& tile, int row, const block_q4_K& block) { pack_scaled(tile, row, block); }

void pack(TileQ5_K& tile, int row, const block_q5_K& block) {
    pack_scaled(tile, row, block);
    for (int sub = 0; sub < 8; sub++) {
        place<1>(tile.high[sub], row, cut<1>(block.qh, sub));
    }
}

void pack(TileQ6_K& tile, int row, const block_q6_K& block) {
    tile.d[row] = block.d;
    for (int i = 0; i < 16; i++) tile.scale[i][row] = block.scales[i];
    for (int sub = 0; sub < 8; sub++) {
        const int part = sub % 4;
        const uint8_t* low = block.ql + sub / 4 * 64 + part % 2 * 32;
        const uint8_t* high = block.qh + sub / 4 * 32;
        place<4>(tile.q[sub], row, cut<4>(low, 4 * (part / 2)));
        place<2>(tile.high[sub], row, cut<2>(high, 2 * part));
    }
}

void pack(TileQ2_K& tile, int row, const block_q2_K& block) {
    tile.d[row] = block.d;
    tile.dmin[row] = block.dmin;
    for (int i = 0; i < 16; i++) tile.scale[i][row] = block.scales[i];
    for (int sub = 0; sub < 8; sub++) {
        place<2>(tile.q[sub], row, cut<2>(block.qs + sub / 4 * 32, 2 * (sub % 4)));
    }
}

void pack(TileIq2Xxs& tile, int row, const block_iq2_xxs& block) {
    tile.d[row] = block.d;
    const auto* bytes = reinterpret_cast<const uint8_t*>(block.qs);
    for (int sub = 0; sub < 8; sub++, bytes += 8) {
        std::memcpy(tile.sub[sub].entry[row], bytes, 4);
        std::memcpy(&tile.sub[sub].signs[row], bytes + 4, 4);
    }
}

void pack(TileIq3Xxs& tile, int row, const block_iq3_xxs& block) {
    tile.d[row] = block.d;
    for (int sub = 0; sub < 8; sub++) {
        std::memcpy(tile.sub[sub].entry[row], block.qs + 8 * sub, 8);
        std::memcpy(&tile.sub[sub].signs[row], block.qs + 64 + 4 * sub, 4);
    }
}

template <class Tile, class Block, int block_columns>
struct Blocks {
    static size_t bytes(int64_t columns) { return static_cast<size_t>(columns / block_columns) * sizeof(Tile); }

    static void pack_rows(const void* rows, size_t stride, int64_t count, int64_t columns, void* out) {
        std::memset(out, 0, bytes(columns));
        for (int64_t row = 0; row < count; row++) {
            const auto* blocks = reinterpret_cast<const Block*>(static_cast<const std::byte*>(rows) + row * stride);
            for (int64_t i = 0; i < columns / block_columns; i++) {
                pack(static_cast<Tile*>(out)[i], static_cast<int>(row), blocks[i]);
            }
        }
    }
};

template <class Value>
struct Plain {
    static size_t bytes(int64_t columns) { return static_cast<size_t>(columns) * kTile * sizeof(Value); }

    static void pack_rows(const void* rows, size_t stride, int64_t count, int64_t columns, void* out) {
        std::memset(out, 0, bytes(columns));
        for (int64_t row = 0; row < count; row++) {
            const auto* from = reinterpret_cast<const Value*>(static_cast<const std::byte*>(rows) + row * stride);
            for (int64_t k = 0; k < columns; k++) static_cast<Value*>(out)[k * kTile + row] = from[k];
        }
    }
};

/// Calls f with the packer of a format.
template <class F>
auto with_packer(Format format, const F& f) {
    switch (format) {
        case Format::f32:
            return f(Plain<uint32_t>());
        case Format::f16:
        case Format::bf16:
            return f(Plain<uint16_t>());
        case Format::q8_0:
            return f(Blocks<TileQ8_0, block_q8_0, 32>());
        case Format::q4_0:
            return f(Blocks<TileQ4_0, block_q4_0, 32>());
        case Format::mxfp4:
            return f(Blocks<TileMxfp4, block_mxfp4, 32>());
        case Format::q2_k:
            return f(Blocks<TileQ2_K, block_q2_K, 256>());
        case Format::q4_k:
            return f(Blocks<TileQ4_K, block_q4_K, 256>());
        case Format::q5_k:
            return f(Blocks<TileQ5_K, block_q5_K, 256>());
        case Format::q6_k:
            return f(Blocks<TileQ6_K, block_q6_K, 256>());
        case Format::iq2_xxs:
            return f(Blocks<TileIq2Xxs, block_iq2_xxs, 256>());
        case Format::iq3_xxs:
            return f(Blocks<TileIq3Xxs, block_iq3_xxs, 256>());
    }
    __builtin_unreachable();
}

}  // namespace

std::optional<Format> format_of(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32:
            return Format::f32;
        case GGML_TYPE_F16:
            return Format::f16;
        case GGML_TYPE_BF16:
            return Format::bf16;
        case GGML_TYPE_Q8_0:
            return Format::q8_0;
        case GGML_TYPE_Q4_0:
            return Format::q4_0;
        case GGML_TYPE_MXFP4:
            return Format::mxfp4;
        case GGML_TYPE_Q2_K:
            return Format::q2_k;
        case GGML_TYPE_Q4_K:
            return Format::q4_k;
        case GGML_TYPE_Q5_K:
            return Format::q5_k;
        case GGML_TYPE_Q6_K:
            return Format::q6_k;
        case GGML_TYPE_IQ2_XXS:
            return Format::iq2_xxs;
        case GGML_TYPE_IQ3_XXS:
            return Format::iq3_xxs;
        default:
            return std::nullopt;
    }
}

bool takes_quantised(Format format) { return format != Format::f32 && format != Format::f16 && format != Format::bf16; }

size_t tile_bytes(Format format, int64_t columns) {
    return with_packer(format, [&](auto packer) { return packer.bytes(columns); });
}

std::optional<PackedTensor> packed_shape(ggml_type type, int64_t columns, int64_t rows, int64_t count) {
    const auto format = format_of(type);
    if (!format || columns % ggml_blck_size(type) || (takes_quantised(*format) && columns % 32)) return std::nullopt;
    return PackedTensor{*format, columns, rows, count, packed_bytes(*format, columns, rows)};
}

void pack_tile(Format format, const void* rows, size_t stride, int64_t count, int64_t columns, void* out) {
    with_packer(format, [&](auto packer) { packer.pack_rows(rows, stride, count, columns, out); });
}

}  // namespace ds4::kernels
