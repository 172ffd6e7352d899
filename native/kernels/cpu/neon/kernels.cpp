#define DS4_ISA neon
#include "cpu/includes.h"
#include "cpu/neon/vector.h"

namespace ds4::kernels::neon {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"neon", quantise, product,      attend,   index_scores,
                      swiglu, squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::neon
