#define DS4_ISA portable
#include "cpu/includes.h"
#include "cpu/portable/vector.h"

namespace ds4::kernels::portable {

#include "cpu/body.h"

extern const Kernels kernels;
const Kernels kernels{"portable", quantise, product, attend};

}  // namespace ds4::kernels::portable
