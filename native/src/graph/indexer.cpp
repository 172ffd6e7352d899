#include <algorithm>
#include <cmath>

#include "graph/blocks.h"

namespace ds4::graph {

IndexQuery index_query(const Context& c, const weights::Indexer& w, ggml_tensor* rank, ggml_tensor* h) {
    ggml_context* ctx = c.b.ctx;
    const int64_t size = c.hp.index_size, heads = c.hp.index_heads;
    ggml_tensor* q = ggml_reshape_3d(ctx, ops::matmul(c.b, w.query, rank), size, heads, c.shape.rows);
    q = ops::rope_tail(c.b, q, c.in.positions, c.rope(4));
    const float scale = 1 / std::sqrt(static_cast<float>(size * heads));
    return {q, ggml_scale(ctx, ops::matmul(c.b, w.proj, h), scale)};
}

ggml_tensor* index_choice(const Context& c, const IndexQuery& query, ggml_tensor* keys, const QueryBlock& block) {
    ggml_context* ctx = c.b.ctx;
    ggml_tensor* q = view_range(ctx, query.q, 2, block.first, block.count);
    ggml_tensor* weights = view_range(ctx, query.weights, 1, block.first, block.count);
    ggml_tensor* scores = ops::index_scores(c.b, q, keys, weights, block.csa_visible);
    return ops::top_rows(c.b, scores, std::min(c.hp.index_top_k, keys->ne[1]));
}

}  // namespace ds4::graph
