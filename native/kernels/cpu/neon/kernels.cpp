#define DS4_ISA neon
#include "cpu/kernel_headers.h"
#include "cpu/neon/vector.h"

namespace ds4::kernels::neon {

#include "cpu/all_kernels.h"

extern const Kernels kernels;
const Kernels kernels{"neon", quantise, matmul,       attend,   index_scores,
                      swiglu, squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::neon
