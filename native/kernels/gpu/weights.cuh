#pragma once
// Readers of the rows of a matrix [columns, rows], for the element types of launcher.h.

#include "gpu/simt.h"
#include "launcher.h"

namespace ds4::kernels::simt {

/// The size of a Q8_0 block in columns and in 16-bit words: a half-precision scale, then two columns in each word.
constexpr int kBlockColumns = 32, kBlockWords = 17;

DS4_DEVICE float low_byte(uint16_t word) { return static_cast<float>(static_cast<int8_t>(word & 0xff)); }
DS4_DEVICE float high_byte(uint16_t word) { return static_cast<float>(static_cast<int8_t>(word >> 8)); }

/// A matrix whose type is known only when the kernel runs; for reading single rows.
struct AnyMatrix {
    Global<const uint16_t> words;
    int type, columns;
};

enum : int {  // Element's values
    kF32 = static_cast<int>(Element::f32),
    kF16 = static_cast<int>(Element::f16),
    kBf16 = static_cast<int>(Element::bf16)
};

/// Returns `m` for a kernel. A matrix without data has no columns.
inline AnyMatrix any_matrix(const DeviceMatrix& m) {
    return {static_cast<const uint16_t*>(m.data), static_cast<int>(m.type), m.data ? m.columns : 0};
}

DS4_DEVICE float any_element(const AnyMatrix& m, int64_t row, int column) {
    const int64_t i = row * m.columns + column;
    if (m.type == kF32) {
        const uint16_t low = m.words[2 * i], high = m.words[2 * i + 1];
        return from_bits(static_cast<uint32_t>(high) << 16 | low);
    }
    if (m.type == kF16) return to_float(Half{m.words[i]});
    if (m.type == kBf16) return to_float(Bfloat{m.words[i]});
    const int64_t block = i / kBlockColumns * kBlockWords;
    const int within = column % kBlockColumns;
    const uint16_t pair = m.words[block + 1 + within / 2];
    return to_float(Half{m.words[block]}) * (within % 2 ? high_byte(pair) : low_byte(pair));
}

/// kRowLanes lanes read a row together, at most kOwn columns each. A reader has `column(i, lane)`, the i-th column of a
/// lane, and `dot`, the lane's sum of its columns times x [kOwn], which is 0 past the last column. Neighbouring lanes
/// read neighbouring columns. kRows is the number of rows that fit into a lane's registers at once. Past the last
/// column a lane reads a valid one instead, so that no load waits for a branch.
constexpr int kRowLanes = 16, kOwn = 16, kLargestRow = kRowLanes * kOwn;

/// Reads four columns at a time. The start of a row must be aligned to four elements.
template <typename T>
struct Fours {
    using Weight = T;
    static constexpr int kRows = 4;
    static DS4_DEVICE int column(int i, int lane) { return i / 4 * 4 * kRowLanes + 4 * lane + i % 4; }
    static DS4_DEVICE float dot(Global<const T> w, int64_t row, int columns, int lane, const float (&x)[kOwn]) {
        float sum = 0;
        DS4_UNROLL
        for (int i = 0; i < kOwn; i += 4) {
            const int first = column(i, lane);
            const Float4 four = load4(w, row * columns + (first < columns ? first : columns - 4));
            sum = fma(four.x, x[i], fma(four.y, x[i + 1], fma(four.z, x[i + 2], fma(four.w, x[i + 3], sum))));
        }
        return sum;
    }
};

/// Reads one column at a time, for rows without that alignment.
template <typename T>
struct Ones {
    using Weight = T;
    static constexpr int kRows = 1;
    static DS4_DEVICE int column(int i, int lane) { return i * kRowLanes + lane; }
    static DS4_DEVICE float dot(Global<const T> w, int64_t row, int columns, int lane, const float (&x)[kOwn]) {
        float sum = 0;
        DS4_UNROLL
        for (int i = 0; i < kOwn; i++) {
            const int own = column(i, lane);
            const T weight = w[row * columns + (own < columns ? own : columns - 1)];
            sum = fma(to_float(weight), x[i], sum);
        }
        return sum;
    }
};

/// Reads Q8_0: each lane reads one word (two columns) of every block.
struct Blocks {
    using Weight = uint16_t;
    static constexpr int kRows = 2;
    static DS4_DEVICE int column(int i, int lane) { return i / 2 * kBlockColumns + 2 * lane + i % 2; }
    static DS4_DEVICE float dot(Global<const uint16_t> w, int64_t row, int columns, int lane, const float (&x)[kOwn]) {
        float sum = 0;
        DS4_UNROLL
        for (int i = 0; i < kOwn; i += 2) {
            const int blocks = columns / kBlockColumns, own = i / 2 < blocks ? i / 2 : blocks - 1;
            const int64_t block = (row * blocks + own) * kBlockWords;
            const uint16_t scale = w[block], pair = w[block + 1 + lane];
            sum = fma(to_float(Half{scale}), fma(low_byte(pair), x[i], high_byte(pair) * x[i + 1]), sum);
        }
        return sum;
    }
};

}  // namespace ds4::kernels::simt
