#pragma once
// Vectors of all sixteen rows of a tile, in plain C++.

#include <array>
#include <bit>
#include <cstdint>

#include "ggml.h"

namespace ds4::kernels::DS4_ISA {

constexpr int kLanes = 16;
constexpr int kPassRows = 2, kFloatPassRows = 2;

using Bytes = std::array<uint8_t, 64>;
using Ints = std::array<int32_t, 16>;
using Floats = std::array<float, 16>;

/// f(i) for every element.
template <class T, class F>
inline T each(const F& f) {
    T out;
    for (size_t i = 0; i < out.size(); i++) out[i] = f(i);
    return out;
}

inline Bytes load_bytes(const void* p) {
    Bytes out;
    __builtin_memcpy(out.data(), p, out.size());
    return out;
}
inline Bytes bytes_of(int value) {
    return each<Bytes>([=](size_t) { return static_cast<uint8_t>(value); });
}
inline Bytes bit_and(const Bytes& a, const Bytes& b) {
    return each<Bytes>([&](size_t i) { return static_cast<uint8_t>(a[i] & b[i]); });
}
inline Bytes bit_or(const Bytes& a, const Bytes& b) {
    return each<Bytes>([&](size_t i) { return static_cast<uint8_t>(a[i] | b[i]); });
}
template <int bits>
inline Bytes shift_right(const Bytes& a) {
    return each<Bytes>([&](size_t i) { return static_cast<uint8_t>(a[i] >> bits); });
}
template <int bits>
inline Bytes shift_left(const Bytes& a) {
    return each<Bytes>([&](size_t i) { return static_cast<uint8_t>(a[i] << bits); });
}
/// table[a] for half bytes a.
inline Bytes look_up(const uint8_t* table, const Bytes& a) {
    return each<Bytes>([&](size_t i) { return table[a[i]]; });
}
/// Four columns of each lane, negated where its sign bit is set: of a lane's 32 bits, four for each group g.
template <int g>
inline Bytes negated(const Bytes& values, const Bytes& signs) {
    return each<Bytes>([&](size_t i) {
        const bool negative = signs[i / 4 * 4 + g / 2] >> (g % 2 * 4 + i % 4) & 1;
        return static_cast<uint8_t>(negative ? -values[i] : values[i]);
    });
}

inline Floats broadcast(float x) {
    return each<Floats>([=](size_t) { return x; });
}
inline Floats zero() { return broadcast(0); }
inline Floats multiply(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] * b[i]; });
}
inline Floats add(const Floats& a, const Floats& b) {
    return each<Floats>([&](size_t i) { return a[i] + b[i]; });
}
/// a * b + c; rounded twice, since a processor without the instruction would take a hundred times as long.
inline Floats fma(const Floats& a, const Floats& b, const Floats& c) { return add(multiply(a, b), c); }
inline Floats fnma(const Floats& a, const Floats& b, const Floats& c) {
    return each<Floats>([&](size_t i) { return c[i] - a[i] * b[i]; });
}
inline Floats to_floats(const Ints& a) {
    return each<Floats>([&](size_t i) { return static_cast<float>(a[i]); });
}

inline Floats load(const float* p) {
    return each<Floats>([=](size_t i) { return p[i]; });
}
inline void store(float* p, const Floats& a) {
    for (size_t i = 0; i < a.size(); i++) p[i] = a[i];
}
inline Floats load_f16(const uint16_t* p) {
    return each<Floats>([=](size_t i) { return ggml_fp16_to_fp32(p[i]); });
}
inline Floats load_bf16(const uint16_t* p) {
    return each<Floats>([=](size_t i) { return std::bit_cast<float>(static_cast<uint32_t>(p[i]) << 16); });
}
inline Floats load_u8(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return static_cast<float>(p[i]); });
}
inline Floats load_i8(const int8_t* p) {
    return each<Floats>([=](size_t i) { return static_cast<float>(p[i]); });
}
inline Floats load_low_half(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return static_cast<float>(p[i] & 15); });
}
inline Floats load_high_half(const uint8_t* p) {
    return each<Floats>([=](size_t i) { return static_cast<float>(p[i] >> 4); });
}
/// 2^(e - 128): half of what E8M0 says, since the values of MXFP4 are doubled to be whole.
inline Floats load_e8m0_half(const uint8_t* p) {
    return each<Floats>([=](size_t i) {
        const uint32_t e = p[i];
        return std::bit_cast<float>(e < 2 ? 0x0020'0000U << e : (e - 1) << 23);
    });
}

/// Computes what avx2/dot.h says.
template <int greatest, bool is_signed, int groups>
class Dot {
   public:
    void begin(int offset, int32_t sum) { sum_.fill(-offset * sum); }

    template <int g>
    void step(const Bytes& weights, const int8_t* four) {
        for (size_t row = 0; row < sum_.size(); row++) {
            for (size_t k = 0; k < 4; k++) {
                const uint8_t w = weights[4 * row + k];
                sum_[row] += (is_signed ? static_cast<int8_t>(w) : w) * four[k];
            }
        }
    }

    const Ints& sum() const { return sum_; }

   private:
    Ints sum_;
};

}  // namespace ds4::kernels::DS4_ISA
