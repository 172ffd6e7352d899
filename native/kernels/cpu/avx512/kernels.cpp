#define DS4_ISA avx512
#include "cpu/avx512/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx512 {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"avx512", quantise, product,      attend,   index_scores,
                      swiglu,   squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::avx512
