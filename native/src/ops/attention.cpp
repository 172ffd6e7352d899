#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* attention(const Build& b, const AttentionInput& in) {
    return b.own_kernels ? cpu::attention(b, in) : generic::attention(b, in);
}

}  // namespace ds4::ops
