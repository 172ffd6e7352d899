#define DS4_ISA avx2
#include "cpu/avx2/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx2 {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"avx2", quantise, product,      attend,   index_scores,
                      swiglu, squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::avx2
