#define DS4_ISA neon
#include "cpu/includes.h"
#include "cpu/neon/vector.h"

namespace ds4::kernels::neon {

#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/product.h"
#include "cpu/quantise.h"

extern const Kernels kernels;
const Kernels kernels{"neon", quantise, product};

}  // namespace ds4::kernels::neon
