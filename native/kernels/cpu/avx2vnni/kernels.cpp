#define DS4_ISA avx2vnni
#include "cpu/avx2vnni/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx2vnni {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"avx2vnni", quantise, product,      attend,   index_scores,
                      swiglu,     squares,  weighted_sum, rms_norm, softmax_mean};

}  // namespace ds4::kernels::avx2vnni
