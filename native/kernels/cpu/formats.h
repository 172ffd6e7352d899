// How each format's tiles are read; included by matmul.h, in the namespace of a processor.
//
// A reader serves up to eight blocks of 32 columns: `weights<g>(sub, part)` is group g of block `sub` for the lanes of
// `part`, with `offset` added to every value; `scale(sub, half, part)` belongs to the 16 columns of a half where
// `halves` is 2, else to all 32, and so does `min`, which is taken away, where there are minima.

template <int g>
inline Bytes half_bytes(const uint8_t (*q)[kGroupBytes], int part) {
    const Bytes both = load_bytes(q[g / 2] + part * 4 * kLanes);
    return bit_and(g % 2 ? shift_right<4>(both) : both, bytes_of(15));
}

template <int g>
inline Bytes quarter_bytes(const uint8_t (*q)[kGroupBytes], int part) {
    const Bytes four = load_bytes(q[g / 4] + part * 4 * kLanes);
    return bit_and(shift_right<2 * (g % 4)>(four), bytes_of(3));
}

/// The defaults of a reader: no offset, no minima and no signs.
template <class T, int block_columns, int greatest_value>
struct Reader {
    using Tile = T;
    static constexpr int columns = block_columns, halves = 1, offset = 0, greatest = greatest_value;
    static constexpr bool is_signed = false, has_min = false;
    const Tile* tile;
};

struct ReadQ8_0 : Reader<TileQ8_0, 32, 128> {
    static constexpr bool is_signed = true;
    template <int g>
    Bytes weights(int sub, int part) const {
        return load_bytes(tile[sub].q[g] + part * 4 * kLanes);
    }
    Floats scale(int sub, int, int part) const { return load_f16(tile[sub].d + part * kLanes); }
};

struct ReadQ4_0 : Reader<TileQ4_0, 32, 15> {
    static constexpr int offset = 8;
    template <int g>
    Bytes weights(int sub, int part) const {
        return half_bytes<g>(tile[sub].q, part);
    }
    Floats scale(int sub, int, int part) const { return load_f16(tile[sub].d + part * kLanes); }
};

/// The doubled values of E2M1 plus the offset.
alignas(16) constexpr uint8_t kE2m1[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct ReadMxfp4 : Reader<TileMxfp4, 32, 24> {
    static constexpr int offset = 12;
    template <int g>
    Bytes weights(int sub, int part) const {
        return look_up(kE2m1, half_bytes<g>(tile[sub].q, part));
    }
    Floats scale(int sub, int, int part) const { return load_e8m0_half(tile[sub].e + part * kLanes); }
};

/// Scales and minima of a block of 32 columns, under those of 256.
template <class T, int greatest_value>
struct ReadScaled : Reader<T, 256, greatest_value> {
    static constexpr bool has_min = true;
    Floats scale(int sub, int, int part) const {
        return multiply(load_f16(this->tile->d + part * kLanes), load_u8(this->tile->scale[sub] + part * kLanes));
    }
    Floats min(int sub, int, int part) const {
        return multiply(load_f16(this->tile->dmin + part * kLanes), load_u8(this->tile->min[sub] + part * kLanes));
    }
};

struct ReadQ4_K : ReadScaled<TileQ4_K, 15> {
    template <int g>
    Bytes weights(int sub, int part) const {
        return half_bytes<g>(tile->q[sub], part);
    }
};

struct ReadQ5_K : ReadScaled<TileQ5_K, 31> {
    template <int g>
    Bytes weights(int sub, int part) const {
        const Bytes high = load_bytes(tile->high[sub][0] + part * 4 * kLanes);
        Bytes bit;
        if constexpr (g < 4) {
            bit = shift_left<4 - g>(high);
        } else {
            bit = shift_right<g - 4>(high);
        }
        return bit_or(half_bytes<g>(tile->q[sub], part), bit_and(bit, bytes_of(16)));
    }
};

struct ReadQ6_K : Reader<TileQ6_K, 256, 63> {
    static constexpr int halves = 2, offset = 32;
    template <int g>
    Bytes weights(int sub, int part) const {
        const Bytes high = shift_left<4>(quarter_bytes<g>(tile->high[sub], part));
        return bit_or(half_bytes<g>(tile->q[sub], part), high);
    }
    Floats scale(int sub, int half, int part) const {
        return multiply(load_f16(tile->d + part * kLanes), load_i8(tile->scale[2 * sub + half] + part * kLanes));
    }
};

struct ReadQ2_K : Reader<TileQ2_K, 256, 3> {
    static constexpr int halves = 2;
    static constexpr bool has_min = true;
    template <int g>
    Bytes weights(int sub, int part) const {
        return quarter_bytes<g>(tile->q[sub], part);
    }
    Floats scale(int sub, int half, int part) const {
        return multiply(load_f16(tile->d + part * kLanes), load_low_half(tile->scale[2 * sub + half] + part * kLanes));
    }
    Floats min(int sub, int half, int part) const {
        return multiply(load_f16(tile->dmin + part * kLanes),
                        load_high_half(tile->scale[2 * sub + half] + part * kLanes));
    }
};

/// Formats of a codebook: a tile's values are looked up once, for all rows and lanes; signs come as they are used.
template <class T>
struct ReadCodebook {
    using Tile = T;
    static constexpr int columns = 256, halves = 1, offset = 0, greatest = 62;
    static constexpr bool is_signed = true, has_min = false;

    ReadCodebook(const Tile* tile, float unit) {
        expand(*tile, q);
        for (int sub = 0; sub < 8; sub++) {
            expand_signs(tile->sub[sub].signs, signs[sub]);
            expand_scales(tile->d, tile->sub[sub].signs, unit, d[sub]);
        }
    }
    template <int g>
    Bytes weights(int sub, int part) const {
        return negated<g>(load_bytes(q[sub][g] + part * 4 * kLanes), load_bytes(signs[sub] + part * kLanes));
    }
    Floats scale(int sub, int, int part) const { return load(d[sub] + part * kLanes); }

    alignas(64) uint8_t q[8][kGroups][kGroupBytes];
    alignas(64) uint32_t signs[8][kTile];
    alignas(64) float d[8][kTile];
};

struct ReadIq2Xxs : ReadCodebook<TileIq2Xxs> {
    explicit ReadIq2Xxs(const Tile* tile) : ReadCodebook(tile, 0.25F) {}
};

struct ReadIq3Xxs : ReadCodebook<TileIq3Xxs> {
    explicit ReadIq3Xxs(const Tile* tile) : ReadCodebook(tile, 0.5F) {}
};
