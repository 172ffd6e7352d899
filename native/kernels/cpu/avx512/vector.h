#pragma once
// Vectors of all sixteen rows of a tile, with AVX-512 (F, BW) and VNNI.

#include <immintrin.h>

#include <cstdint>

namespace ds4::kernels::DS4_ISA {

constexpr int kLanes = 16;
constexpr int kPassRows = 12, kFloatPassRows = 6;

using Bytes = __m512i;  // four columns of sixteen rows
using Ints = __m512i;
using Floats = __m512;

inline Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
inline Bytes bytes_of(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
inline Bytes bit_and(Bytes a, Bytes b) { return _mm512_and_si512(a, b); }
inline Bytes bit_or(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
/// Shifts pairs of bytes: the caller masks what comes over from the neighbour.
template <int bits>
inline Bytes shift_right(Bytes a) {
    return _mm512_srli_epi16(a, bits);
}
template <int bits>
inline Bytes shift_left(Bytes a) {
    return _mm512_slli_epi16(a, bits);
}
/// table[a] for half bytes a.
inline Bytes look_up(const uint8_t* table, Bytes a) {
    const __m128i entries = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), a);
}
/// Four columns of each lane, negated where its sign bit is set: of a lane's 32 bits, four for each group g.
template <int g>
inline Bytes negated(Bytes values, Bytes signs) {
    constexpr int b = 0x01010101 * (g / 2), four = 0x04040404;
    const __m512i byte = _mm512_broadcast_i32x4(_mm_setr_epi32(b, b + four, b + 2 * four, b + 3 * four));
    const __m512i bits = _mm512_set1_epi32(g % 2 ? static_cast<int>(0x80402010) : 0x08040201);
    const __mmask64 negative = _mm512_test_epi8_mask(_mm512_shuffle_epi8(signs, byte), bits);
    return _mm512_mask_sub_epi8(values, negative, _mm512_setzero_si512(), values);
}

inline Floats zero() { return _mm512_setzero_ps(); }
inline Floats broadcast(float x) { return _mm512_set1_ps(x); }
inline Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
/// a * b + c, rounded once.
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
/// c - a * b, rounded once.
inline Floats fnma(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
inline Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }

inline Floats load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Floats a) { _mm512_storeu_ps(p, a); }
inline Floats load_f16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Floats load_bf16(const uint16_t* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
inline __m512i load_wide(const void* p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline Floats load_u8(const uint8_t* p) { return to_floats(load_wide(p)); }
inline Floats load_i8(const int8_t* p) {
    return to_floats(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline Floats load_low_half(const uint8_t* p) {
    return to_floats(_mm512_and_si512(load_wide(p), _mm512_set1_epi32(15)));
}
inline Floats load_high_half(const uint8_t* p) { return to_floats(_mm512_srli_epi32(load_wide(p), 4)); }
/// 2^(e - 128): half of what E8M0 says, since the values of MXFP4 are doubled to be whole.
inline Floats load_e8m0_half(const uint8_t* p) {
    const __m512i e = load_wide(p);
    const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x0020'0000), e);
    const __mmask16 small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
    return _mm512_castsi512_ps(_mm512_mask_blend_epi32(small, normal, subnormal));
}

}  // namespace ds4::kernels::DS4_ISA
