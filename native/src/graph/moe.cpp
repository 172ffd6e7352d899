#include "graph/blocks.h"

namespace ds4::graph {

ggml_tensor* moe_block(const Context& c, const weights::Moe& w, int64_t layer, ggml_tensor* tokens, ggml_tensor* h) {
    ggml_tensor* scores = ops::router_scores(c.b, w.router, h);
    const ops::Routes routes = ops::route(c.b, scores, {w.bias, w.token_map, tokens},
                                          {c.hp.experts_used, c.hp.routed_scale, c.hp.normalise_weights});
    const ops::MoeWeights experts{w.gate, w.up, w.down, w.shared_gate, w.shared_up, w.shared_down};
    return ops::moe(c.b, h, routes, experts, {c.hp.clamp_routed[layer], c.hp.clamp_shared[layer]});
}

}  // namespace ds4::graph
