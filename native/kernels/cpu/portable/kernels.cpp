#define DS4_ISA portable
#include "cpu/kernel_headers.h"
#include "cpu/portable/vector.h"

namespace ds4::kernels::portable {

#include "cpu/all_kernels.h"

extern const Kernels kernels;
const Kernels kernels{"portable", quantise, matmul,       attend,   index_scores,
                      swiglu,     squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::portable
