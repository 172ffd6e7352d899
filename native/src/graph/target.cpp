#include "graph/target.h"

#include "graph/blocks.h"

namespace ds4::graph {
namespace {

ops::HcWeights hc(const model::HyperConnection& w) { return {w.fn, w.base, w.scale}; }

/// The token's embedding on every stream (1): [hidden, streams, n].
ggml_tensor* embed(const Context& c, const model::Weights& w) {
    ggml_tensor* e = ggml_get_rows(c.b.ctx, w.embedding, c.in.tokens);
    e = ggml_reshape_3d(c.b.ctx, e, c.hp.hidden, 1, c.shape.rows);
    return ggml_repeat_4d(c.b.ctx, e, c.hp.hidden, c.hp.streams, c.shape.rows, 1);
}

/// x -> x' around a sub-layer (8)-(10).
template <typename F>
ggml_tensor* around(const Context& c, ggml_tensor* x, const model::HyperConnection& w, ggml_tensor* norm, F sublayer) {
    const ops::HcMix mix = ops::hc_mix(c.b, x, hc(w), c.hc());
    ggml_tensor* h = ops::rms_norm(c.b, ops::hc_collapse(c.b, x, mix.pre), norm, c.hp.norm_epsilon);
    return ops::hc_expand(c.b, sublayer(h), x, mix);
}

}  // namespace

ops::Rope Context::rope(int ratio) const {
    ops::Rope r{static_cast<int32_t>(hp.rope_size), ratio ? hp.compress_rope_base : hp.rope_base};
    if (!ratio || !hp.yarn) return r;
    r.factor = hp.yarn_factor;
    r.beta_fast = hp.yarn_beta_fast;
    r.beta_slow = hp.yarn_beta_slow;
    r.original_context = static_cast<int32_t>(hp.yarn_original_context);
    return r;
}

ops::HcOptions Context::hc() const { return {hp.sinkhorn_iterations, hp.hc_epsilon, hp.norm_epsilon}; }

ggml_tensor* cut(ggml_context* ctx, ggml_tensor* x, int axis, int64_t first, int64_t count) {
    if (axis == 0) return ggml_view_1d(ctx, x, count, first * x->nb[0]);
    if (axis == 1) return ggml_view_2d(ctx, x, x->ne[0], count, x->nb[1], first * x->nb[1]);
    return ggml_view_3d(ctx, x, x->ne[0], x->ne[1], count, x->nb[1], x->nb[2], first * x->nb[2]);
}

size_t node_bound(const model::Hyperparameters& hp, const Shape& s) {
    const int64_t queries = (s.rows + kAttentionRows - 1) / kAttentionRows;
    return hp.layers * (160 + 2 * hp.experts_used + 48 * queries) + 256;
}

Target build_target(ggml_context* ctx, const model::Hyperparameters& hp, const model::Weights& weights,
                    const std::vector<state::LayerState>& state, const Shape& shape) {
    Target t{ggml_new_graph_custom(ctx, node_bound(hp, shape), false), create_inputs(ctx, hp, shape)};
    const Context c{{ctx, t.graph}, hp, shape, t.in};
    ggml_tensor* x = embed(c, weights);
    ggml_tensor* tokens = t.in.tokens;
    for (int64_t i = 0; i < hp.layers; i++) {
        const model::Layer& w = weights.layers[i];
        x = around(c, x, w.hc_attention, w.attention.norm,
                   [&](ggml_tensor* h) { return attention_block(c, w.attention, state[i], hp.ratios[i], h); });
        if (i + 1 == hp.layers && shape.logits == Logits::last) {  // nothing reads the other rows any more
            x = cut(ctx, x, 2, shape.rows - 1, 1);
            tokens = cut(ctx, tokens, 0, shape.rows - 1, 1);
        }
        x = around(c, x, w.hc_ffn, w.moe.norm, [&](ggml_tensor* h) { return moe_block(c, w.moe, i, tokens, h); });
    }
    if (shape.logits == Logits::none) return t;
    t.logits = head_block(c, weights, x);
    ggml_set_output(t.logits);
    ggml_build_forward_expand(t.graph, t.logits);
    return t;
}

}  // namespace ds4::graph
