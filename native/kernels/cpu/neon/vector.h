#pragma once
// Vectors of four rows of a tile, with NEON and its dot products.

#include <arm_neon.h>

#include <cstdint>

namespace ds4::kernels::DS4_ISA {

constexpr int kLanes = 4;
constexpr int kPassRows = 8, kFloatPassRows = 5;

using Bytes = uint8x16_t;  // four columns of four rows
using Ints = int32x4_t;
using Floats = float32x4_t;

inline Bytes load_bytes(const void* p) { return vld1q_u8(static_cast<const uint8_t*>(p)); }
inline Bytes bytes_of(int value) { return vdupq_n_u8(static_cast<uint8_t>(value)); }
inline Bytes bit_and(Bytes a, Bytes b) { return vandq_u8(a, b); }
inline Bytes bit_or(Bytes a, Bytes b) { return vorrq_u8(a, b); }
template <int bits>
inline Bytes shift_right(Bytes a) {
    if constexpr (bits == 0) {
        return a;
    } else {
        return vshrq_n_u8(a, bits);
    }
}
template <int bits>
inline Bytes shift_left(Bytes a) {
    return vshlq_n_u8(a, bits);
}
/// table[a] for half bytes a.
inline Bytes look_up(const uint8_t* table, Bytes a) { return vqtbl1q_u8(vld1q_u8(table), a); }
/// Four columns of each lane, negated where its sign bit is set: of a lane's 32 bits, four for each group g.
template <int g>
inline Bytes negated(Bytes values, Bytes signs) {
    constexpr uint32_t b = 0x01010101 * (g / 2), four = 0x04040404;
    constexpr uint32_t bytes[] = {b, b + four, b + 2 * four, b + 3 * four};
    const uint8x16_t bits = vreinterpretq_u8_u32(vdupq_n_u32(g % 2 ? 0x80402010 : 0x08040201));
    const uint8x16_t ones = vtstq_u8(vqtbl1q_u8(signs, vreinterpretq_u8_u32(vld1q_u32(bytes))), bits);
    return vsubq_u8(veorq_u8(values, ones), ones);
}

inline Floats zero() { return vdupq_n_f32(0); }
inline Floats broadcast(float x) { return vdupq_n_f32(x); }
inline Floats multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
inline Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
/// a * b + c, rounded once.
inline Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
/// c - a * b, rounded once.
inline Floats fnma(Floats a, Floats b, Floats c) { return vfmsq_f32(c, a, b); }
inline Floats to_floats(Ints a) { return vcvtq_f32_s32(a); }

inline Floats load(const float* p) { return vld1q_f32(p); }
inline void store(float* p, Floats a) { vst1q_f32(p, a); }
inline Floats load_f16(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
inline Floats load_bf16(const uint16_t* p) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16)); }
inline uint32x4_t load_wide(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vmovl_u16(vget_low_u16(vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)))));
}
inline Floats load_u8(const uint8_t* p) { return vcvtq_f32_u32(load_wide(p)); }
inline Floats load_i8(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}
inline Floats load_low_half(const uint8_t* p) { return vcvtq_f32_u32(vandq_u32(load_wide(p), vdupq_n_u32(15))); }
inline Floats load_high_half(const uint8_t* p) { return vcvtq_f32_u32(vshrq_n_u32(load_wide(p), 4)); }
/// 2^(e - 128): half of what E8M0 says, since the values of MXFP4 are doubled to be whole.
inline Floats load_e8m0_half(const uint8_t* p) {
    const uint32x4_t e = load_wide(p);
    const uint32x4_t normal = vshlq_n_u32(vsubq_u32(e, vdupq_n_u32(1)), 23);
    const uint32x4_t subnormal = vshlq_u32(vdupq_n_u32(0x0020'0000), vreinterpretq_s32_u32(e));
    return vreinterpretq_f32_u32(vbslq_u32(vcltq_u32(e, vdupq_n_u32(2)), subnormal, normal));
}

/// Computes what avx2/dot.h says; no weight is above 127, so that all are signed.
template <int greatest, bool is_signed, int groups>
class Dot {
   public:
    void begin(int offset, int32_t sum) { sum_ = vdupq_n_s32(-offset * sum); }

    template <int g>
    void step(Bytes weights, const int8_t* four) {
        int32_t bits;
        __builtin_memcpy(&bits, four, sizeof bits);
        sum_ = vdotq_s32(sum_, vreinterpretq_s8_u8(weights), vreinterpretq_s8_s32(vdupq_n_s32(bits)));
    }

    Ints sum() const { return sum_; }

   private:
    Ints sum_;
};

}  // namespace ds4::kernels::DS4_ISA
