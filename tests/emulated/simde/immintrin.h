#pragma once
// Stands before the compiler's header of this name, so that the kernels for AVX-512 and AVX-VNNI compile for a
// processor with AVX2 alone: SIMDe's functions take the place of what it does not have. What SIMDe lacks is made of
// halves here.

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <bit>

namespace emulated {

template <class Half>
struct Halves {
    Half low, high;
};

template <class Whole, class Half>
Whole joined(Half low, Half high) {
    return std::bit_cast<Whole>(Halves<Half>{low, high});
}

inline __m512 cvtepi32_ps(__m512i a) {
    const auto [low, high] = std::bit_cast<Halves<__m256i>>(a);
    return joined<__m512>(_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high));
}
inline __m512 cvtph_ps(__m256i a) {
    const auto [low, high] = std::bit_cast<Halves<__m128i>>(a);
    return joined<__m512>(_mm256_cvtph_ps(low), _mm256_cvtph_ps(high));
}
inline __m512i cvtepu16_epi32(__m256i a) {
    const auto [low, high] = std::bit_cast<Halves<__m128i>>(a);
    return joined<__m512i>(_mm256_cvtepu16_epi32(low), _mm256_cvtepu16_epi32(high));
}
inline __m512i cvtepu8_epi32(__m128i a) {
    return joined<__m512i>(_mm256_cvtepu8_epi32(a), _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8)));
}
inline __m512i cvtepi8_epi32(__m128i a) {
    return joined<__m512i>(_mm256_cvtepi8_epi32(a), _mm256_cvtepi8_epi32(_mm_srli_si128(a, 8)));
}

}  // namespace emulated

#define _mm256_dpbusd_avx_epi32(sum, a, b) simde_mm256_dpbusd_epi32(sum, a, b)
#ifndef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps(a) emulated::cvtepi32_ps(a)
#endif
#ifndef _mm512_cvtph_ps
#define _mm512_cvtph_ps(a) emulated::cvtph_ps(a)
#endif
#ifndef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32(a) emulated::cvtepu16_epi32(a)
#endif
#ifndef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32(a) emulated::cvtepu8_epi32(a)
#endif
#ifndef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32(a) emulated::cvtepi8_epi32(a)
#endif
#ifndef _mm512_cmplt_epi32_mask
#define _mm512_cmplt_epi32_mask(a, b) simde_mm512_cmpgt_epi32_mask(b, a)
#endif
