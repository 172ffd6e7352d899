#include "graph/target.h"

#include <algorithm>

#include "graph/blocks.h"
#include "graph/features.h"

namespace ds4::graph {
namespace {

/// The last `count` of the rows of x [hidden, streams, n].
ggml_tensor* last_rows(const Context& c, ggml_tensor* x, int64_t count) {
    return view_range(c.b.ctx, x, 2, x->ne[2] - count, count);
}

/// Rows of the last layer that anything reads after its attention.
int64_t needed_rows(const Shape& s, bool tapped) {
    const int64_t for_logits = s.logits == Logits::all ? s.rows : s.logits == Logits::last ? 1 : 0;
    return std::max(for_logits, tapped ? s.features : 0);
}

}  // namespace

ggml_tensor* embed(const Context& c, ggml_tensor* embedding, ggml_tensor* tokens) {
    ggml_tensor* e = ggml_get_rows(c.b.ctx, embedding, tokens);
    e = ggml_reshape_3d(c.b.ctx, e, c.hp.hidden, 1, tokens->ne[0]);
    return ggml_repeat_4d(c.b.ctx, e, c.hp.hidden, c.hp.streams, e->ne[2], 1);
}

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

ggml_tensor* view_range(ggml_context* ctx, ggml_tensor* x, int axis, int64_t first, int64_t count) {
    if (axis == 0) return ggml_view_1d(ctx, x, count, first * x->nb[0]);
    if (axis == 1) return ggml_view_2d(ctx, x, x->ne[0], count, x->nb[1], first * x->nb[1]);
    return ggml_view_3d(ctx, x, x->ne[0], x->ne[1], count, x->nb[1], x->nb[2], first * x->nb[2]);
}

size_t node_bound(const model::Hyperparameters& hp, const Shape& s) {
    const int64_t queries = (s.rows + kAttentionRows - 1) / kAttentionRows;
    return hp.layers * (160 + 2 * hp.experts_used + 48 * queries) + 256;
}

Target build_target(ggml_context* ctx, const model::Hyperparameters& hp, const weights::Weights& weights,
                    const std::vector<state::LayerState>& state, const Taps& taps, const Shape& shape) {
    const weights::DeviceMap& device_map = weights.device_map;
    Target t{ggml_new_graph_custom(ctx, node_bound(hp, shape), false), {}};
    for (int device = 0; device <= device_map.cpu(); device++) {
        t.in.push_back(create_inputs(ctx, hp, shape, device));
    }
    const auto shared = std::make_shared<ops::Shared>();
    const auto at = [&](int device) {
        return Context{{ctx, t.graph, device_map.kernel_choice(device), shared}, hp, shape, t.in[device]};
    };
    ggml_tensor* x = embed(at(device_map.embedding), weights.embedding, t.in[device_map.embedding].tokens);
    std::vector<ggml_tensor*> tapped;
    for (int64_t i = 0; i < hp.layers; i++) {
        const Context c = at(device_map.layers[i]);
        ggml_tensor* tokens = c.in.tokens;
        const weights::Layer& w = weights.layers[i];
        x = with_hyper_connections(c, x, w.hc_attention, w.attention.norm, [&](ggml_tensor* h) {
            return attention_block(c, w.attention, state[i], hp.ratios[i], h);
        });
        if (i + 1 == hp.layers) {  // nothing reads the other rows any more
            const int64_t needed = needed_rows(shape, taps.has(i));
            if (needed == 0) break;
            x = last_rows(c, x, needed);
            tokens = view_range(ctx, tokens, 0, shape.rows - needed, needed);
        }
        x = with_hyper_connections(c, x, w.hc_ffn, w.moe.norm,
                                   [&](ggml_tensor* h) { return moe_block(c, w.moe, i, tokens, h); });
        // Taken here, so that the mean and not the streams is what crosses to the drafter's device.
        if (shape.features && taps.has(i))
            tapped.push_back(c.b.expanded(stream_mean(c.b, last_rows(c, x, shape.features))));
    }
    const Context head = at(device_map.head);
    if (shape.features) keep_features(head.b, tapped, taps.ring, head.in.features);
    if (shape.logits == Logits::none) return t;
    if (shape.logits == Logits::last) x = last_rows(head, x, 1);
    t.logits = head_block(head, weights, x);
    ggml_set_output(t.logits);
    ggml_build_forward_expand(t.graph, t.logits);
    return t;
}

}  // namespace ds4::graph
