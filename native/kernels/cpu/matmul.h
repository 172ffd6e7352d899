// The products, written once over the vectors of a processor: its folder includes this after its own vector.h, within
// its namespace. Every output is summed in one order, whatever the number of rows.

inline int64_t device_index_of(const int32_t* index, int64_t row) { return index ? index[row] : row; }

inline const std::byte* row_at(const Rows& rows, int64_t row) {
    return static_cast<const std::byte*>(rows.data) +
           static_cast<size_t>(device_index_of(rows.index, row)) * rows.stride;
}

/// A quantised row.
struct Row {
    const int8_t* q;
    const float* d;
    const int32_t* sums;  // of 16

    Row() = default;
    Row(const Rows& rows, int64_t index, int64_t columns)
        : q(reinterpret_cast<const int8_t*>(row_at(rows, index))),
          d(reinterpret_cast<const float*>(q + columns)),
          sums(reinterpret_cast<const int32_t*>(d + columns / 32)) {}

    int32_t sum(int64_t block, int half, int halves) const {
        return halves == 2 ? sums[2 * block + half] : sums[2 * block] + sums[2 * block + 1];
    }
};

/// Adds one half (or all) of a block of 32 columns to the sums of n rows.
template <class Reader, int n, int half>
inline void add_half(const Reader& reader, int sub, int part, const Row* rows, int64_t block, Floats* acc) {
    constexpr int count = kGroups / Reader::halves;
    Dot<Reader::greatest, Reader::is_signed, count> dots[n];
    for (int r = 0; r < n; r++) dots[r].begin(Reader::offset, rows[r].sum(block, half, Reader::halves));
    const auto group = [&]<int g>() {
        const Bytes w = reader.template weights<half * count + g>(sub, part);
        for (int r = 0; r < n; r++) dots[r].template step<g>(w, rows[r].q + block * 32 + (half * count + g) * 4);
    };
    [&]<int... g>(std::integer_sequence<int, g...>) {
        (group.template operator()<g>(), ...);
    }(std::make_integer_sequence<int, count>());
    const Floats scale = reader.scale(sub, half, part);
    for (int r = 0; r < n; r++) {
        acc[r] = fma(to_floats(dots[r].sum()), multiply(scale, broadcast(rows[r].d[block])), acc[r]);
    }
    if constexpr (Reader::has_min) {
        const Floats min = reader.min(sub, half, part);
        for (int r = 0; r < n; r++) {
            const float sum = rows[r].d[block] * static_cast<float>(rows[r].sum(block, half, Reader::halves));
            acc[r] = fnma(min, broadcast(sum), acc[r]);
        }
    }
}

/// Asks for a share of what comes `ahead` bytes later: while several rows are computed from the cache, nothing else
/// would keep the memory busy.
template <int64_t ahead, int shares>
inline void prefetch_share(const void* now, int share) {
    constexpr int64_t bytes = (ahead + shares - 1) / shares;
    const auto* from = static_cast<const char*>(now) + ahead + share * bytes;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
}

/// Outputs of one tile for n rows: [n][kTile].
template <class Reader, int n>
void pass(const void* data, int64_t columns, const Row* rows, float (*out)[kTile]) {
    constexpr int at_once = 8;  // blocks that stay in the first cache for all parts
    constexpr int64_t ahead = at_once * 32 / Reader::columns * sizeof(typename Reader::Tile);
    const auto* tile = static_cast<const typename Reader::Tile*>(data);
    for (int r = 0; r < n; r++) {
        for (int part = 0; part < kParts; part++) store(out[r] + part * kLanes, zero());
    }
    const int64_t blocks = columns / 32;
    for (int64_t first = 0; first < blocks; first += at_once) {
        const auto* here = tile + first * 32 / Reader::columns;
        const Reader reader{here};
        const int count = static_cast<int>(std::min<int64_t>(at_once, blocks - first));
        for (int part = 0; part < kParts; part++) {
            Floats acc[n];
            for (int r = 0; r < n; r++) acc[r] = load(out[r] + part * kLanes);
            for (int sub = 0; sub < count; sub++) {
                prefetch_share<ahead, kParts * at_once>(here, part * at_once + sub);
                add_half<Reader, n, 0>(reader, sub, part, rows, first + sub, acc);
                if constexpr (Reader::halves == 2) add_half<Reader, n, 1>(reader, sub, part, rows, first + sub, acc);
            }
            for (int r = 0; r < n; r++) store(out[r] + part * kLanes, acc[r]);
        }
    }
}

/// Calls function<n>() for the n of 1 .. most that is `count`.
template <int most, class F>
inline void with_count(int count, const F& function) {
    [&]<int... n>(std::integer_sequence<int, n...>) {
        ((count == n + 1 ? function.template operator()<n + 1>() : void()), ...);
    }(std::make_integer_sequence<int, most>());
}

/// Copies a tile's outputs to where they belong, or adds them; the last tile of a matrix may have fewer rows.
inline void deliver(const float (*from)[kTile], const Matrix& matrix, int64_t tile, int64_t row, int count,
                    const Outputs& out) {
    const int64_t valid = std::min(kTile, matrix.rows - tile * kTile);
    for (int r = 0; r < count; r++) {
        float* to = out.data + device_index_of(out.index, row + r) * out.stride + tile * kTile;
        if (out.scale) {
            for (int64_t i = 0; i < valid; i++) to[i] += out.scale[row + r] * from[r][i];
        } else {
            for (int64_t i = 0; i < valid; i++) to[i] = from[r][i];
        }
    }
}

template <class Reader>
void quantised_matmul(const Matrix& matrix, const Rows& rows, int64_t first, int64_t last, const Outputs& out) {
    const int64_t bytes = matrix.columns / Reader::columns * static_cast<int64_t>(sizeof(typename Reader::Tile));
    for (int64_t tile = first; tile < last; tile++) {
        const auto* data = static_cast<const std::byte*>(matrix.data) + tile * bytes;
        for (int64_t row = 0; row < rows.count; row += kPassRows) {
            const int count = static_cast<int>(std::min<int64_t>(kPassRows, rows.count - row));
            Row some[kPassRows];
            for (int r = 0; r < count; r++) some[r] = Row(rows, row + r, matrix.columns);
            alignas(64) float sums[kPassRows][kTile];
            with_count<kPassRows>(count, [&]<int n>() { pass<Reader, n>(data, matrix.columns, some, sums); });
            deliver(sums, matrix, tile, row, count, out);
        }
    }
}

// Floats: four sums run side by side, of every fourth column each, because one would wait for itself.

struct ReadF32 {
    using Value = float;
    static Floats load_column(const float* p) { return load(p); }
};
struct ReadF16 {
    using Value = uint16_t;
    static Floats load_column(const uint16_t* p) { return load_f16(p); }
};
struct ReadBf16 {
    using Value = uint16_t;
    static Floats load_column(const uint16_t* p) { return load_bf16(p); }
};

template <class Reader, int n>
void float_pass(const typename Reader::Value* tile, int64_t columns, const float* const* rows, float (*out)[kTile]) {
    constexpr int chains = 4;
    for (int part = 0; part < kParts; part++) {
        Floats acc[chains][n];
        for (auto& chain : acc) {
            for (Floats& sum : chain) sum = zero();
        }
        const auto column = [&](int64_t k, int chain) {
            const Floats w = Reader::load_column(tile + k * kTile + part * kLanes);
            for (int r = 0; r < n; r++) acc[chain][r] = fma(w, broadcast(rows[r][k]), acc[chain][r]);
        };
        int64_t k = 0;
        for (; k + chains <= columns; k += chains) {
            for (int chain = 0; chain < chains; chain++) column(k + chain, chain);
        }
        for (int chain = 0; k < columns; k++, chain++) column(k, chain);
        for (int r = 0; r < n; r++) {
            store(out[r] + part * kLanes, add(add(acc[0][r], acc[1][r]), add(acc[2][r], acc[3][r])));
        }
    }
}

template <class Reader>
void float_matmul(const Matrix& matrix, const Rows& rows, int64_t first, int64_t last, const Outputs& out) {
    for (int64_t tile = first; tile < last; tile++) {
        const auto* data = static_cast<const typename Reader::Value*>(matrix.data) + tile * matrix.columns * kTile;
        for (int64_t row = 0; row < rows.count; row += kFloatPassRows) {
            const int count = static_cast<int>(std::min<int64_t>(kFloatPassRows, rows.count - row));
            const float* some[kFloatPassRows];
            for (int r = 0; r < count; r++) {
                some[r] = reinterpret_cast<const float*>(row_at(rows, row + r));
            }
            alignas(64) float sums[kFloatPassRows][kTile];
            with_count<kFloatPassRows>(count,
                                       [&]<int n>() { float_pass<Reader, n>(data, matrix.columns, some, sums); });
            deliver(sums, matrix, tile, row, count, out);
        }
    }
}

inline void matmul(const Matrix& matrix, const Rows& rows, int64_t first, int64_t last, const Outputs& out) {
    switch (matrix.format) {
        case Format::f32:
            return float_matmul<ReadF32>(matrix, rows, first, last, out);
        case Format::f16:
            return float_matmul<ReadF16>(matrix, rows, first, last, out);
        case Format::bf16:
            return float_matmul<ReadBf16>(matrix, rows, first, last, out);
        case Format::q8_0:
            return quantised_matmul<ReadQ8_0>(matrix, rows, first, last, out);
        case Format::q4_0:
            return quantised_matmul<ReadQ4_0>(matrix, rows, first, last, out);
        case Format::mxfp4:
            return quantised_matmul<ReadMxfp4>(matrix, rows, first, last, out);
        case Format::q2_k:
            return quantised_matmul<ReadQ2_K>(matrix, rows, first, last, out);
        case Format::q4_k:
            return quantised_matmul<ReadQ4_K>(matrix, rows, first, last, out);
        case Format::q5_k:
            return quantised_matmul<ReadQ5_K>(matrix, rows, first, last, out);
        case Format::q6_k:
            return quantised_matmul<ReadQ6_K>(matrix, rows, first, last, out);
        case Format::iq2_xxs:
            return quantised_matmul<ReadIq2Xxs>(matrix, rows, first, last, out);
        case Format::iq3_xxs:
            return quantised_matmul<ReadIq3Xxs>(matrix, rows, first, last, out);
    }
}
