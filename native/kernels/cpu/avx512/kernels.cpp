#define DS4_ISA avx512
#include "cpu/avx512/dot.h"
#include "cpu/kernel_headers.h"

namespace ds4::kernels::avx512 {

#include "cpu/all_kernels.h"

extern const Kernels kernels;
const Kernels kernels{"avx512", quantise, matmul,       attend,   index_scores,
                      swiglu,   squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::avx512
