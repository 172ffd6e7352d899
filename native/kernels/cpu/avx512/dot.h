#pragma once
// Sums of bytes times bytes with AVX512-VNNI: one instruction for four columns of sixteen rows.

#include "cpu/avx512/vector.h"

namespace ds4::kernels::DS4_ISA {

/// Computes what avx2/dot.h says. The instruction takes unsigned weights: signed ones have 128 added.
template <int greatest, bool is_signed, int groups>
class Dot {
   public:
    void begin(int offset, int32_t sum) { sum_ = _mm512_set1_epi32(-(offset + (is_signed ? 128 : 0)) * sum); }

    template <int g>
    void step(Bytes weights, const int8_t* four) {
        if constexpr (is_signed) weights = _mm512_xor_si512(weights, bytes_of(-128));
        int32_t bits;
        __builtin_memcpy(&bits, four, sizeof bits);
        sum_ = _mm512_dpbusd_epi32(sum_, weights, _mm512_set1_epi32(bits));
    }

    Ints sum() const { return sum_; }

   private:
    Ints sum_;
};

}  // namespace ds4::kernels::DS4_ISA
