#include <cmath>

#include "ops/generic/nodes.h"

namespace ds4::ops::generic {
namespace {

/// silu(min(gate, c)) * clip(up, -c, c) (M34).
ggml_tensor* clamped_swiglu(const Build& b, ggml_tensor* gate, ggml_tensor* up, float clamp) {
    if (clamp > 0) {
        gate = ggml_clamp(b.ctx, gate, -INFINITY, clamp);
        up = ggml_clamp(b.ctx, up, -clamp, clamp);
    }
    return ggml_swiglu_split(b.ctx, gate, up);
}

/// Weights of the chosen experts (M33): [used, n].
ggml_tensor* expert_weights(const Build& b, ggml_tensor* scores, ggml_tensor* selection, const RouteOptions& o) {
    const int64_t n = scores->ne[1], used = selection->ne[0];
    ggml_tensor* columns = ggml_reshape_3d(b.ctx, scores, 1, scores->ne[0], n);
    ggml_tensor* w = ggml_reshape_2d(b.ctx, ggml_get_rows(b.ctx, columns, selection), used, n);
    if (o.normalise) {
        ggml_tensor* sum = ggml_clamp(b.ctx, ggml_sum_rows(b.ctx, w), kSmallestWeightSum, INFINITY);
        w = ggml_div(b.ctx, w, sum);
    }
    return ggml_scale(b.ctx, w, o.scale);
}

/// Sum over the experts axis of x [hidden, used, n].
ggml_tensor* sum_experts(const Build& b, ggml_tensor* x) {
    ggml_tensor* sum = nullptr;
    for (int64_t e = 0; e < x->ne[1]; e++) {
        ggml_tensor* one = ggml_view_2d(b.ctx, x, x->ne[0], x->ne[2], x->nb[2], e * x->nb[1]);
        sum = sum ? ggml_add(b.ctx, sum, one) : one;
    }
    return x->ne[1] == 1 ? ggml_cont(b.ctx, sum) : sum;
}

ggml_tensor* routed(const Build& b, ggml_tensor* h, ggml_tensor* selection, const MoeWeights& w, float clamp) {
    ggml_tensor* rows = ggml_reshape_3d(b.ctx, h, h->ne[0], 1, h->ne[1]);
    ggml_tensor* gate = expert_matmul(b, w.gate, rows, selection);
    ggml_tensor* up = expert_matmul(b, w.up, rows, selection);
    return expert_matmul(b, w.down, clamped_swiglu(b, gate, up, clamp), selection);
}

}  // namespace

ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h) {
    ggml_tensor* logits = matmul(b, router, h);
    if (logits->op == GGML_OP_MUL_MAT) ggml_mul_mat_set_prec(logits, GGML_PREC_F32);
    return ggml_sqrt(b.ctx, ggml_softplus(b.ctx, logits));
}

Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& o) {
    ggml_tensor* experts = by.token_map ? ggml_get_rows(b.ctx, by.token_map, by.tokens)
                                        : top_rows(b, ggml_add(b.ctx, scores, by.bias), o.used);
    return {experts, expert_weights(b, scores, experts, o)};
}

ggml_tensor* shared_expert(const Build& b, ggml_tensor* h, const MoeWeights& w, float clamp) {
    ggml_tensor* gate = matmul(b, w.shared_gate, h);
    ggml_tensor* up = matmul(b, w.shared_up, h);
    return matmul(b, w.shared_down, clamped_swiglu(b, gate, up, clamp));
}

ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& o) {
    ggml_tensor* weights = ggml_reshape_3d(b.ctx, routes.weights, 1, routes.weights->ne[0], routes.weights->ne[1]);
    ggml_tensor* out = ggml_mul(b.ctx, routed(b, h, routes.experts, w, o.clamp_routed), weights);
    return ggml_add(b.ctx, sum_experts(b, out), shared_expert(b, h, w, o.clamp_shared));
}

}  // namespace ds4::ops::generic
