#pragma once
// Sums of bytes times bytes without VNNI.

#include "cpu/avx2/vector.h"

namespace ds4::kernels::DS4_ISA {

/// Sum over `groups` groups of weights, at most `greatest` in magnitude, times activations of at most 127. Sixteen bits
/// hold the sums of a few groups, which are widened before they could overflow.
template <int greatest, bool is_signed, int groups>
class Dot {
   public:
    /// `offset` is in every weight, and `sum` that of the activations.
    void begin(int offset, int32_t sum) { sum_ = _mm256_set1_epi32(-offset * sum); }

    template <int g>
    void step(Bytes weights, const int8_t* four) {
        const Bytes a = broadcast_four(four);
        const __m256i pairs = is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(a, weights))
                                        : _mm256_maddubs_epi16(weights, a);
        few_ = g % kFew == 0 ? pairs : _mm256_add_epi16(few_, pairs);
        if constexpr (g % kFew == kFew - 1 || g == groups - 1) {
            sum_ = _mm256_add_epi32(sum_, _mm256_madd_epi16(few_, _mm256_set1_epi16(1)));
        }
    }

    Ints sum() const { return sum_; }

   private:
    // -128 * -127 * 2 is 32512: a weight of -128 is no exception.
    static constexpr int kFew = 32767 / (2 * greatest * 127) >= 4 ? 4 : 32767 / (2 * greatest * 127);
    static_assert(kFew == 4 || kFew == 2 || kFew == 1);
    Ints sum_, few_;
};

}  // namespace ds4::kernels::DS4_ISA
