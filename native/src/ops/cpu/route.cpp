#include <cmath>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// sqrt(softplus(x)) (M31).
float score(float x) { return std::sqrt(x > 20 ? x : std::log1p(std::exp(x))); }

/// Turns the products of a thread's tiles into scores.
void score_experts(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *w = out->src[0], *x = out->src[1];
    const kernels::Matrix matrix = kernels::packed_of(w)->matrix(w, 0);
    const Part part(kernels::tiles(matrix.rows), ith, nth);
    kernels().matmul(matrix, {x->data, x->nb[1], out->ne[1]}, part.first, part.last,
                     {static_cast<float*>(out->data), out->ne[0]});
    const int64_t first = part.first * kernels::kTile, last = std::min(part.last * kernels::kTile, matrix.rows);
    for (int64_t i = 0; i < out->ne[1]; i++) {
        auto* scores = row<float>(out, i);
        for (int64_t e = first; e < last; e++) scores[e] = score(scores[e]);
    }
}

void choose_by_score(const ggml_tensor* scores, const ggml_tensor* bias, int64_t i, int32_t* chosen, int64_t used) {
    thread_local std::vector<float> biased;
    biased.resize(scores->ne[0]);
    for (int64_t e = 0; e < scores->ne[0]; e++) biased[e] = row(scores, i)[e] + row(bias, 0)[e];
    greatest(biased.data(), scores->ne[0], chosen, used);
}

/// Weights of the chosen experts (M33).
void weigh(const float* scores, const int32_t* chosen, const RouteOptions& options, float* weights) {
    float sum = 0;
    for (int64_t k = 0; k < options.used; k++) sum += scores[chosen[k]];
    const float scale = options.normalise ? options.scale / std::max(sum, kSmallestWeightSum) : options.scale;
    for (int64_t k = 0; k < options.used; k++) weights[k] = scores[chosen[k]] * scale;
}

/// out [used, n, 2] has the experts and then, as floats, their weights.
void choose_experts(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *scores = out->src[0], *by = out->src[1], *tokens = out->src[2];
    const auto options = options_of<RouteOptions>(out);
    const Part part(scores->ne[1], ith, nth);
    for (int64_t i = part.first; i < part.last; i++) {
        auto* chosen = row<int32_t>(out, i);
        if (tokens) {
            std::copy_n(row<const int32_t>(by, element<int32_t>(tokens, i, 0)), options.used, chosen);
        } else {
            choose_by_score(scores, by, i, chosen, options.used);
        }
        weigh(row(scores, i), chosen, options, row<float>(out, i, 1));
    }
}

}  // namespace

ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h) {
    const kernels::PackedTensor& packed = *kernels::packed_of(router);
    return node(b, GGML_TYPE_F32, {packed.rows, h->ne[1]}, {router, rows_for(b, packed.format, h)}, score_experts);
}

Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options) {
    const int64_t n = scores->ne[1];
    ggml_tensor* both =
        by.token_map
            ? node(b, GGML_TYPE_I32, {options.used, n, 2}, {scores, by.token_map, by.tokens}, choose_experts, options)
            : node(b, GGML_TYPE_I32, {options.used, n, 2}, {scores, by.bias}, choose_experts, options);
    Routes routes{ggml_view_2d(b.ctx, both, options.used, n, both->nb[1], 0),
                  ggml_view_2d(b.ctx, both, options.used, n, both->nb[1], both->nb[2])};
    routes.weights->type = GGML_TYPE_F32;  // as large as the integers beside it
    return routes;
}

}  // namespace ds4::ops::cpu
