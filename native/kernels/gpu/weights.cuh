#pragma once
// Rows of a matrix [columns, rows] of launcher.h's element types.

#include "gpu/simt.h"
#include "launcher.h"

namespace ds4::kernels::simt {

/// Q8_0's block of 32 columns in words of 16 bits: the scale, a half, then the columns, two a word.
constexpr int kBlockColumns = 32, kBlockWords = 17;

DS4_DEVICE float low_byte(uint16_t word) { return static_cast<float>(static_cast<int8_t>(word & 0xff)); }
DS4_DEVICE float high_byte(uint16_t word) { return static_cast<float>(static_cast<int8_t>(word >> 8)); }

/// A matrix of a type that is known when the kernel runs, for single rows.
struct AnyMatrix {
    Global<const uint16_t> words;
    int type, columns;
};

enum : int {  // Element's values
    kF32 = static_cast<int>(Element::f32),
    kF16 = static_cast<int>(Element::f16),
    kBf16 = static_cast<int>(Element::bf16)
};

/// A matrix without data has no columns.
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

/// kRowLanes lanes read a row together, each kOwn columns at most: `column(i, lane)` is a lane's i-th, and `dot` the
/// sum of its columns' products with x, which holds a number for each, and 0 for those past the last. Lanes of a row
/// read next to each other; kRows rows go well together in the registers of a lane. In place of a column past the last
/// they read one that there is: so no load waits for a branch.
constexpr int kRowLanes = 16, kOwn = 16, kLargestRow = kRowLanes * kOwn;

/// Columns in fours, which a row's start must be aligned to.
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

/// Columns one by one, where rows have no such alignment.
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

/// Q8_0: a word of every block.
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
