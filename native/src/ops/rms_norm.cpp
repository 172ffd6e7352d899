#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon) {
    return b.own_kernels ? cpu::rms_norm(b, x, weight, epsilon) : generic::rms_norm(b, x, weight, epsilon);
}

}  // namespace ds4::ops
