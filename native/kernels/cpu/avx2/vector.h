#pragma once
// Vectors of eight rows of a tile, with AVX2, FMA and F16C.

#include <immintrin.h>

#include <cstdint>

namespace ds4::kernels::DS4_ISA {

constexpr int kLanes = 8;
/// Rows that one pass over a tile serves: as many as leave the registers room.
constexpr int kPassRows = 6, kFloatPassRows = 3;

using Bytes = __m256i;  // four columns of eight rows
using Ints = __m256i;
using Floats = __m256;

inline Bytes load_bytes(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline Bytes bytes_of(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
inline Bytes bit_and(Bytes a, Bytes b) { return _mm256_and_si256(a, b); }
inline Bytes bit_or(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
/// Shifts pairs of bytes: the caller masks what comes over from the neighbour.
template <int bits>
inline Bytes shift_right(Bytes a) {
    return _mm256_srli_epi16(a, bits);
}
template <int bits>
inline Bytes shift_left(Bytes a) {
    return _mm256_slli_epi16(a, bits);
}
/// table[a] for half bytes a.
inline Bytes look_up(const uint8_t* table, Bytes a) {
    const __m128i entries = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), a);
}
/// Four columns of each lane, negated where its sign bit is set: of a lane's 32 bits, four for each group g.
template <int g>
inline Bytes negated(Bytes values, Bytes signs) {
    constexpr int b = 0x01010101 * (g / 2), four = 0x04040404;
    const __m256i byte =
        _mm256_setr_epi32(b, b + four, b + 2 * four, b + 3 * four, b, b + four, b + 2 * four, b + 3 * four);
    const __m256i bits = _mm256_set1_epi32(g % 2 ? static_cast<int>(0x80402010) : 0x08040201);
    const __m256i ones = _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(signs, byte), bits), bits);
    return _mm256_sub_epi8(_mm256_xor_si256(values, ones), ones);
}
inline Bytes broadcast_four(const int8_t* four) {
    int32_t bits;
    __builtin_memcpy(&bits, four, sizeof bits);
    return _mm256_set1_epi32(bits);
}

inline Floats zero() { return _mm256_setzero_ps(); }
inline Floats broadcast(float x) { return _mm256_set1_ps(x); }
inline Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
inline Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
/// a * b + c, rounded once.
inline Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
/// c - a * b, rounded once.
inline Floats fnma(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
inline Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }

inline Floats load(const float* p) { return _mm256_loadu_ps(p); }
inline void store(float* p, Floats a) { _mm256_storeu_ps(p, a); }
inline Floats load_f16(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Floats load_bf16(const uint16_t* p) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline __m256i load_wide(const void* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}
inline Floats load_u8(const uint8_t* p) { return to_floats(load_wide(p)); }
inline Floats load_i8(const int8_t* p) {
    return to_floats(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline Floats load_low_half(const uint8_t* p) {
    return to_floats(_mm256_and_si256(load_wide(p), _mm256_set1_epi32(15)));
}
inline Floats load_high_half(const uint8_t* p) { return to_floats(_mm256_srli_epi32(load_wide(p), 4)); }
/// 2^(e - 128): half of what E8M0 says, since the values of MXFP4 are doubled to be whole.
inline Floats load_e8m0_half(const uint8_t* p) {
    const __m256i e = load_wide(p);
    const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
    const __m256i subnormal = _mm256_sllv_epi32(_mm256_set1_epi32(0x0020'0000), e);
    const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, small));
}

}  // namespace ds4::kernels::DS4_ISA
