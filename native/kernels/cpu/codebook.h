// Values of the codebook formats, expanded to signed bytes; included like product.h. The codebooks are the format's own
// and come with ggml.

constexpr int kParts = kTile / kLanes;

/// For each 7 sign bits a byte of ones where the value is negative; an eighth sign makes their number even.
inline constexpr std::array<uint64_t, 128> kSignMasks = [] {
    std::array<uint64_t, 128> masks{};
    for (uint64_t bits = 0; bits < masks.size(); bits++) {
        const uint64_t signs = bits | static_cast<uint64_t>(std::popcount(bits) & 1) << 7;
        for (int i = 0; i < 8; i++) masks[bits] |= (signs >> i & 1) * 0xFFULL << 8 * i;
    }
    return masks;
}();

/// Eight positive bytes, negated where the mask says so.
inline uint64_t negated(uint64_t values, uint64_t mask) { return (values ^ mask) + (mask & 0x0101'0101'0101'0101ULL); }

/// Stores eight columns of one row: its bytes in groups 2i and 2i + 1.
inline void place(int8_t (*q)[kGroupBytes], int i, int row, uint64_t values) {
    const auto low = static_cast<uint32_t>(values), high = static_cast<uint32_t>(values >> 32);
    std::memcpy(q[2 * i] + 4 * row, &low, 4);
    std::memcpy(q[2 * i + 1] + 4 * row, &high, 4);
}

inline void expand_scales(const uint16_t* d, const uint32_t* signs, float unit, float* out) {
    for (int part = 0; part < kParts; part++) store(out + part * kLanes, load_f16(d + part * kLanes));
    for (int row = 0; row < kTile; row++) out[row] *= (0.5F + static_cast<float>(signs[row] >> 28)) * unit;
}

inline void expand(const TileIq2Xxs& tile, int8_t (*q)[kGroups][kGroupBytes], float (*d)[kTile]) {
    for (int sub = 0; sub < 8; sub++) {
        expand_scales(tile.d, tile.sub[sub].signs, 0.25F, d[sub]);
        for (int row = 0; row < kTile; row++) {
            const uint32_t signs = tile.sub[sub].signs[row];
            for (int i = 0; i < 4; i++) {
                const uint64_t values = iq2xxs_grid[tile.sub[sub].entry[row][i]];
                place(q[sub], i, row, negated(values, kSignMasks[signs >> 7 * i & 127]));
            }
        }
    }
}

inline void expand(const TileIq3Xxs& tile, int8_t (*q)[kGroups][kGroupBytes], float (*d)[kTile]) {
    for (int sub = 0; sub < 8; sub++) {
        expand_scales(tile.d, tile.sub[sub].signs, 0.5F, d[sub]);
        for (int row = 0; row < kTile; row++) {
            const uint32_t signs = tile.sub[sub].signs[row];
            const uint8_t* entry = tile.sub[sub].entry[row];
            for (int i = 0; i < 4; i++) {
                const uint64_t values = iq3xxs_grid[entry[2 * i]] | static_cast<uint64_t>(iq3xxs_grid[entry[2 * i + 1]])
                                                                        << 32;
                place(q[sub], i, row, negated(values, kSignMasks[signs >> 7 * i & 127]));
            }
        }
    }
}
