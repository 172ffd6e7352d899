// The functions of ops.h and markov.h: each passes its arguments to the implementation that was chosen at load
// (kernel_choice.h). An implementation that does not take certain sizes is passed over for ggml's operations, and
// products follow their weights: interleaved ones (packed_tensor.h) can only be read by the CPU's kernels.

#include <algorithm>

#include "ops/cpu/nodes.h"
#include "ops/device/kernel_nodes.h"
#include "ops/generic/nodes.h"
#include "ops/markov.h"

namespace ds4::ops {

using kernels::Op;
using kernels::packed_of;

ggml_tensor* matmul(const Build& b, ggml_tensor* w, ggml_tensor* x) {
    return packed_of(w) ? cpu::matmul(b, w, x) : ggml_mul_mat(b.ctx, w, x);
}

ggml_tensor* grouped_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x) {
    return packed_of(w) ? cpu::matmul(b, w, x) : generic::grouped_matmul(b, w, x);
}

ggml_tensor* expert_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection) {
    return packed_of(w) ? cpu::expert_matmul(b, w, x, selection) : ggml_mul_mat_id(b.ctx, w, x, selection);
}

ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon) {
    return b.choice.cpu(Op::rms_norm) ? cpu::rms_norm(b, x, weight, epsilon) : generic::rms_norm(b, x, weight, epsilon);
}

HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options) {
    const kernels::PackedTensor* fn = packed_of(w.fn);
    const bool own = fn && !kernels::takes_quantised(fn->format) && x->ne[1] <= cpu::kMostStreams;
    return own ? cpu::hc_open(b, x, w, norm, options) : generic::hc_open(b, x, w, norm, options);
}

ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix) {
    const bool own = b.choice.cpu(Op::hyper_connections) && x->ne[1] <= cpu::kMostStreams;
    return own ? cpu::hc_expand(b, y, x, mix) : generic::hc_expand(b, y, x, mix);
}

ggml_tensor* compress(const Build& b, const CompressInput& in) {
    return b.choice.cpu(Op::compress) ? cpu::compress(b, in) : generic::compress(b, in);
}

ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask) {
    const bool fits = q->ne[0] % kernels::kTile == 0;  // published models have 128
    return b.choice.cpu(Op::index_scores) && fits ? cpu::index_scores(b, q, keys, weights, mask)
                                                  : generic::index_scores(b, q, keys, weights, mask);
}

ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count) {
    return b.choice.cpu(Op::top_rows) ? cpu::top_rows(b, scores, count)
                                      : ggml_top_k(b.ctx, scores, static_cast<int>(count));
}

ggml_tensor* attention(const Build& b, const AttentionInput& in) {
    return b.choice.cpu(Op::attention) ? cpu::attention(b, in) : generic::attention(b, in);
}

ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in) {
    const bool own = b.slots && device::attends(in.q->ne[0], in.ring->type);
    return own ? device::noncausal_attention(b, in) : generic::noncausal_attention(b, in);
}

ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h) {
    return packed_of(router) ? cpu::router_scores(b, router, h) : generic::router_scores(b, router, h);
}

Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options) {
    return b.choice.cpu(Op::route) ? cpu::route(b, scores, by, options) : generic::route(b, scores, by, options);
}

ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& options) {
    const auto routed = {w.gate, w.up, w.down}, shared = {w.shared_gate, w.shared_up, w.shared_down};
    if (!std::ranges::all_of(routed, packed_of)) return generic::moe(b, h, routes, w, options);
    if (std::ranges::all_of(shared, packed_of)) return cpu::moe(b, h, routes, w, options);
    // The nodes of another device come first, so that the scheduler changes to the CPU once.
    for (ggml_tensor* route : {routes.experts, routes.weights}) b.expanded(route);
    ggml_tensor* beside = b.expanded(generic::shared_expert(b, h, w, options.clamp_shared));
    return ggml_add(b.ctx, beside, cpu::moe(b, h, routes, {w.gate, w.up, w.down, nullptr, nullptr, nullptr}, options));
}

/// A whole vocabulary is bound by reading W2 for one row of activations at a time; ggml's matmul is as fast there.
MarkovChain markov_chain(const Build& b, const MarkovInput& in) {
    return b.choice.cpu(Op::markov_head) && in.draft_vocab ? cpu::markov_chain(b, in) : generic::markov_chain(b, in);
}

}  // namespace ds4::ops
