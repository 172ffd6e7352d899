#define DS4_ISA portable
#include "cpu/includes.h"
#include "cpu/portable/vector.h"

namespace ds4::kernels::portable {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"portable", quantise, product,      attend,   index_scores,
                      swiglu,     squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::portable
