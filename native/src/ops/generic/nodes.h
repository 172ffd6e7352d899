#pragma once
// Compositions of ggml's operations, for every backend: the reference of the CPU's and the devices' kernels.

#include "ops/ops.h"

namespace ds4::ops::generic {

/// Implements ops::grouped_matmul.
ggml_tensor* grouped_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x);

/// Implements ops::attention.
ggml_tensor* attention(const Build& b, const AttentionInput& in);

/// Implements ops::noncausal_attention.
ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in);

/// Implements ops::index_scores.
ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask);

/// Implements ops::hc_open and ops::hc_expand.
HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options);
ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix);

/// Implements ops::rms_norm.
ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon);

/// Implements ops::compress.
ggml_tensor* compress(const Build& b, const CompressInput& in);

/// Implements ops::router_scores, ops::route and ops::moe.
ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h);
Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options);
ggml_tensor* shared_expert(const Build& b, ggml_tensor* h, const MoeWeights& w, float clamp);
ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& options);

}  // namespace ds4::ops::generic
