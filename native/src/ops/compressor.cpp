#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* compress(const Build& b, const CompressInput& in) {
    return b.own_kernels ? cpu::compress(b, in) : generic::compress(b, in);
}

}  // namespace ds4::ops
