#include <cmath>

#include "ops/generic/nodes.h"

namespace ds4::ops {
namespace {

/// [a, b, c] -> [a, c, b], contiguous; free where one of the swapped axes is 1.
ggml_tensor* swap_outer(const Build& b, ggml_tensor* x) {
    if (x->ne[1] == 1 || x->ne[2] == 1) return ggml_reshape_3d(b.ctx, x, x->ne[0], x->ne[2], x->ne[1]);
    return ggml_cont(b.ctx, ggml_permute(b.ctx, x, 0, 2, 1, 3));
}

ggml_tensor* transposed(const Build& b, ggml_tensor* x) { return ggml_cont(b.ctx, ggml_transpose(b.ctx, x)); }

ggml_tensor* exact_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x) {
    ggml_tensor* y = ggml_mul_mat(b.ctx, w, x);
    ggml_mul_mat_set_prec(y, GGML_PREC_F32);
    return y;
}

/// Logits of the shared keys: one product for all heads and rows, [rows, n, heads].
ggml_tensor* shared_logits(const Build& b, const AttentionInput& in, ggml_tensor* q_by_head) {
    const int64_t n = in.q->ne[2], heads = in.q->ne[1];
    ggml_tensor* q = ggml_reshape_2d(b.ctx, q_by_head, in.q->ne[0], n * heads);
    return ggml_reshape_3d(b.ctx, exact_matmul(b, in.shared, q), in.shared->ne[1], n, heads);
}

/// Weighted sum of the shared values: p [rows, n, heads] -> [size, n, heads].
ggml_tensor* shared_values(const Build& b, ggml_tensor* shared, ggml_tensor* p) {
    ggml_tensor* flat = ggml_reshape_2d(b.ctx, p, p->ne[0], p->ne[1] * p->ne[2]);
    ggml_tensor* o = exact_matmul(b, transposed(b, shared), flat);
    return ggml_reshape_3d(b.ctx, o, shared->ne[0], p->ne[1], p->ne[2]);
}

/// Rows [first, first + count) along ne0 of p, contiguous.
ggml_tensor* slice(const Build& b, ggml_tensor* p, int64_t first, int64_t count) {
    ggml_tensor* v = ggml_view_3d(b.ctx, p, count, p->ne[1], p->ne[2], p->nb[1], p->nb[2], first * sizeof(float));
    return ggml_cont(b.ctx, v);
}

ggml_tensor* softmax(const Build& b, const AttentionInput& in, ggml_tensor* logits) {
    const float scale = 1 / std::sqrt(static_cast<float>(in.q->ne[0]));
    ggml_tensor* p = ggml_soft_max_ext(b.ctx, logits, in.mask, scale, 0);
    ggml_soft_max_add_sinks(p, in.sinks);
    return p;
}

}  // namespace

ggml_tensor* generic::attention(const Build& b, const AttentionInput& in) {
    ggml_tensor* logits = shared_logits(b, in, swap_outer(b, in.q));
    if (!in.selected) return swap_outer(b, shared_values(b, in.shared, softmax(b, in, logits)));

    const int64_t shared = in.shared->ne[1], k = in.selected->ne[1];
    ggml_tensor* own = exact_matmul(b, in.selected, in.q);  // [k, heads, n]
    ggml_tensor* p = softmax(b, in, ggml_concat(b.ctx, logits, swap_outer(b, own), 0));
    ggml_tensor* o = swap_outer(b, shared_values(b, in.shared, slice(b, p, 0, shared)));
    ggml_tensor* own_p = swap_outer(b, slice(b, p, shared, k));  // [k, heads, n]
    return ggml_add(b.ctx, o, exact_matmul(b, transposed(b, in.selected), own_p));
}

ggml_tensor* generic::index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights,
                                   ggml_tensor* mask) {
    ggml_tensor* k = ggml_view_3d(b.ctx, keys, keys->ne[0], 1, keys->ne[1], keys->nb[1], keys->nb[1], 0);
    return ggml_lightning_indexer(b.ctx, q, k, weights, mask);
}

}  // namespace ds4::ops
