#include <algorithm>

#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h) {
    return kernels::packed_of(router) ? cpu::router_scores(b, router, h) : generic::router_scores(b, router, h);
}

Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options) {
    return b.own_kernels ? cpu::route(b, scores, by, options) : generic::route(b, scores, by, options);
}

ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& options) {
    const auto routed = {w.gate, w.up, w.down}, shared = {w.shared_gate, w.shared_up, w.shared_down};
    if (!std::ranges::all_of(routed, kernels::packed_of)) return generic::moe(b, h, routes, w, options);
    if (std::ranges::all_of(shared, kernels::packed_of)) return cpu::moe(b, h, routes, w, options);
    // What a device of its own computes comes first, so that one change of place to the CPU is enough.
    for (ggml_tensor* route : {routes.experts, routes.weights}) b.expanded(route);
    ggml_tensor* beside = b.expanded(generic::shared_expert(b, h, w, options.clamp_shared));
    return ggml_add(b.ctx, beside, cpu::moe(b, h, routes, {w.gate, w.up, w.down, nullptr, nullptr, nullptr}, options));
}

}  // namespace ds4::ops
