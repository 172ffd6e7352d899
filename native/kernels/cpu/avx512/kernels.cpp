#define DS4_ISA avx512
#include "cpu/avx512/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx512 {

#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/product.h"
#include "cpu/quantise.h"

extern const Kernels kernels;
const Kernels kernels{"avx512", quantise, product};

}  // namespace ds4::kernels::avx512
