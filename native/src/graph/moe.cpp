#include "graph/blocks.h"

namespace ds4::graph {
namespace {

/// The experts of every row (32): by token in hash layers, by biased score elsewhere.
ggml_tensor* selection(const Context& c, const model::Moe& w, ggml_tensor* tokens, ggml_tensor* scores) {
    if (w.token_map) return ggml_get_rows(c.b.ctx, w.token_map, tokens);
    return ops::top_rows(c.b, ggml_add(c.b.ctx, scores, w.bias), c.hp.experts_used);
}

}  // namespace

ggml_tensor* moe_block(const Context& c, const model::Moe& w, int64_t layer, ggml_tensor* tokens, ggml_tensor* h) {
    ggml_tensor* scores = ops::router_scores(c.b, w.router, h);
    const ops::MoeWeights experts{w.gate, w.up, w.down, w.shared_gate, w.shared_up, w.shared_down};
    const ops::MoeOptions options{c.hp.routed_scale, c.hp.normalise_weights, c.hp.clamp_routed[layer],
                                  c.hp.clamp_shared[layer]};
    return ops::moe(c.b, h, scores, selection(c, w, tokens, scores), experts, options);
}

}  // namespace ds4::graph
