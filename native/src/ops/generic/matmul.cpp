#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* generic::grouped_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x) {
    const int64_t width = x->ne[0], groups = x->ne[1], n = x->ne[2], rank = w->ne[1] / groups;
    ggml_tensor* by_group = ggml_view_3d(b.ctx, w, width, rank, groups, w->nb[1], w->nb[1] * rank, 0);
    ggml_tensor* low = ggml_mul_mat(b.ctx, by_group, ggml_permute(b.ctx, x, 0, 2, 1, 3));  // [rank, n, groups]
    return ggml_cont_2d(b.ctx, ggml_permute(b.ctx, low, 0, 2, 1, 3), rank * groups, n);
}

}  // namespace ds4::ops
