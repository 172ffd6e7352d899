// Values of the codebook formats, expanded to bytes; included like matmul.h. The codebooks are the format's own
// and come with ggml.

constexpr int kParts = kTile / kLanes;

/// Stores eight columns of one row: its bytes in groups 2i and 2i + 1.
inline void place(uint8_t (*q)[kGroupBytes], int i, int row, uint32_t low, uint32_t high) {
    std::memcpy(q[2 * i] + 4 * row, &low, 4);
    std::memcpy(q[2 * i + 1] + 4 * row, &high, 4);
}

/// Expands four groups of 7 sign bits to a bit for each of 32 columns. The eighth bit of a byte gives it even parity.
inline void expand_signs(const uint32_t* packed, uint32_t* signs) {
    for (int row = 0; row < kTile; row++) {
        const uint32_t w = packed[row];
        const uint32_t seven = (w & 0x7f) | (w << 1 & 0x7f00) | (w << 2 & 0x7f'0000) | (w << 3 & 0x7f00'0000);
        uint32_t odd = seven ^ seven >> 4;
        odd ^= odd >> 2;
        odd ^= odd >> 1;
        signs[row] = seven | (odd & 0x0101'0101) << 7;
    }
}

inline void expand_scales(const uint16_t* d, const uint32_t* signs, float unit, float* out) {
    for (int part = 0; part < kParts; part++) store(out + part * kLanes, load_f16(d + part * kLanes));
    for (int row = 0; row < kTile; row++) out[row] *= (0.5F + static_cast<float>(signs[row] >> 28)) * unit;
}

/// Values of a tile's 256 columns, without their signs.
inline void expand(const TileIq2Xxs& tile, uint8_t (*q)[kGroups][kGroupBytes]) {
    for (int sub = 0; sub < 8; sub++) {
        for (int row = 0; row < kTile; row++) {
            for (int i = 0; i < 4; i++) {
                const uint64_t values = iq2xxs_grid[tile.sub[sub].entry[row][i]];
                place(q[sub], i, row, static_cast<uint32_t>(values), static_cast<uint32_t>(values >> 32));
            }
        }
    }
}

inline void expand(const TileIq3Xxs& tile, uint8_t (*q)[kGroups][kGroupBytes]) {
    for (int sub = 0; sub < 8; sub++) {
        for (int row = 0; row < kTile; row++) {
            const uint8_t* entry = tile.sub[sub].entry[row];
            for (int i = 0; i < 4; i++) {
                place(q[sub], i, row, iq3xxs_grid[entry[2 * i]], iq3xxs_grid[entry[2 * i + 1]]);
            }
        }
    }
}
