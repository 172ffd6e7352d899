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
    const auto all = {w.gate, w.up, w.down, w.shared_gate, w.shared_up, w.shared_down};
    return std::ranges::all_of(all, kernels::packed_of) ? cpu::moe(b, h, routes, w, options)
                                                        : generic::moe(b, h, routes, w, options);
}

}  // namespace ds4::ops
