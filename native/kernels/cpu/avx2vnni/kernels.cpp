#define DS4_ISA avx2vnni
#include "cpu/avx2vnni/dot.h"
#include "cpu/includes.h"

namespace ds4::kernels::avx2vnni {

#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/product.h"
#include "cpu/quantise.h"

extern const Kernels kernels;
const Kernels kernels{"avx2vnni", quantise, product};

}  // namespace ds4::kernels::avx2vnni
