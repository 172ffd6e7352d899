#include "ops/cpu/nodes.h"

namespace ds4::ops {

ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count) {
    return b.own_kernels ? cpu::top_rows(b, scores, count) : ggml_top_k(b.ctx, scores, static_cast<int>(count));
}

}  // namespace ds4::ops
