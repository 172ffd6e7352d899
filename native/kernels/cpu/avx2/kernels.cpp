#define DS4_ISA avx2
#include "cpu/avx2/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx2 {

#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/product.h"
#include "cpu/quantise.h"

extern const Kernels kernels;
const Kernels kernels{"avx2", quantise, product};

}  // namespace ds4::kernels::avx2
