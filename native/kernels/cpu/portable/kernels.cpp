#define DS4_ISA portable
#include "cpu/includes.h"
#include "cpu/portable/vector.h"

namespace ds4::kernels::portable {

#include "cpu/codebook.h"
#include "cpu/formats.h"
#include "cpu/product.h"
#include "cpu/quantise.h"

extern const Kernels kernels;
const Kernels kernels{"portable", quantise, product};

}  // namespace ds4::kernels::portable
