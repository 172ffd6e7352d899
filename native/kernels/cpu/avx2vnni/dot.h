#pragma once
// Sums of bytes times bytes with AVX-VNNI: one instruction for four columns of eight rows.

#include "cpu/avx2/vector.h"

namespace ds4::kernels::DS4_ISA {

/// Computes what avx2/dot.h says. The instruction takes unsigned weights: signed ones have 128 added.
template <int greatest, bool is_signed, int groups>
class Dot {
   public:
    void begin(int offset, int32_t sum) { sum_ = _mm256_set1_epi32(-(offset + (is_signed ? 128 : 0)) * sum); }

    template <int g>
    void step(Bytes weights, const int8_t* four) {
        if constexpr (is_signed) weights = _mm256_xor_si256(weights, bytes_of(-128));
        sum_ = _mm256_dpbusd_avx_epi32(sum_, weights, broadcast_four(four));
    }

    Ints sum() const { return sum_; }

   private:
    Ints sum_;
};

}  // namespace ds4::kernels::DS4_ISA
