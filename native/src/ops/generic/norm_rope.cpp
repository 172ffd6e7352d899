#include <cmath>

#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* rope_tail(const Build& b, ggml_tensor* x, ggml_tensor* positions, const Rope& rope) {
    const size_t skip = (x->ne[0] - rope.dims) * ggml_element_size(x);
    ggml_tensor* tail = ggml_view_3d(b.ctx, x, rope.dims, x->ne[1], x->ne[2], x->nb[1], x->nb[2], skip);
    const bool yarn = rope.factor != 1;
    // ggml multiplies cos and sin by 1 + 0.1 ln(s) when it extrapolates; DS4 has no magnitude factor.
    const float cancel = yarn ? 1 / (1 + 0.1f * std::log(rope.factor)) : 1;
    ggml_tensor* rotated =
        ggml_rope_ext_inplace(b.ctx, tail, positions, nullptr, rope.dims, GGML_ROPE_TYPE_NORMAL, rope.original_context,
                              rope.base, 1 / rope.factor, yarn ? 1 : 0, cancel, rope.beta_fast, rope.beta_slow);
    // The whole of x, but after its tail was rotated: without the second source nothing would read the rotation, and
    // x's memory would never be free for reuse.
    ggml_tensor* whole = ggml_view_3d(b.ctx, x, x->ne[0], x->ne[1], x->ne[2], x->nb[1], x->nb[2], 0);
    whole->src[1] = rotated;
    return whole;
}

ggml_tensor* generic::rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon) {
    ggml_tensor* y = ggml_rms_norm(b.ctx, x, epsilon);
    return weight ? ggml_mul(b.ctx, y, weight) : y;
}

}  // namespace ds4::ops
