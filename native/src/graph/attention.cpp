
#include "graph/blocks.h"

namespace ds4::graph {
namespace {

/// The keys and queries that the query blocks of one layer share.
struct Keys {
    ggml_tensor* q;                     // [head_size, heads, n]
    ggml_tensor* raw;                   // [head_size, W+n]: the window before the first row, then the rows
    ggml_tensor* compressed = nullptr;  // [head_size, length] F32: all rows the queries may see, or
    ggml_tensor* choices = nullptr;     // [head_size, length]: rows to choose from
    ggml_tensor* index_keys = nullptr;  // [index_size, length]
    IndexQuery index{};
};

/// Keys of the window in order of position; the rows are rounded to the cache's type, so that it does not matter
/// whether a key comes from the ring or from this forward. Persists the last rows.
ggml_tensor* window_keys(const Context& c, const weights::Attention& w, ggml_tensor* ring, int ratio, ggml_tensor* h) {
    ggml_context* ctx = c.b.ctx;
    ggml_tensor* kv = key_rows(c, w, h, c.in.positions, ratio);
    ggml_tensor* rows =
        ring->type == GGML_TYPE_F32 ? kv : ggml_cast(ctx, ggml_cast(ctx, kv, ring->type), GGML_TYPE_F32);
    ggml_tensor* keys = c.b.expanded(ggml_concat(ctx, ggml_get_rows(ctx, ring, c.in.window), rows, 1));
    const int64_t kept = c.in.ring->ne[0];
    c.b.expanded(ggml_set_rows(ctx, ring, view_range(ctx, kv, 1, kv->ne[1] - kept, kept), c.in.ring));
    return keys;
}

ggml_tensor* widened(const Context& c, ggml_tensor* x) {
    return x->type == GGML_TYPE_F32 ? x : ggml_cast(c.b.ctx, x, GGML_TYPE_F32);
}

/// Keys each query chose, and the mask over window and chosen keys.
void choose(const Context& c, const Keys& k, const QueryBlock& block, ops::AttentionInput& in) {
    ggml_context* ctx = c.b.ctx;
    ggml_tensor* choice = index_choice(c, k.index, k.index_keys, block);
    const int64_t top = choice->ne[0], length = k.choices->ne[1];
    ggml_tensor* rows = ggml_get_rows(ctx, k.choices, ggml_reshape_1d(ctx, choice, top * block.count));
    in.selected = ggml_reshape_3d(ctx, rows, c.hp.head_size, top, block.count);
    ggml_tensor* visible = ggml_reshape_3d(ctx, block.csa_visible, 1, length, block.count);
    ggml_tensor* mask = ggml_reshape_2d(ctx, ggml_get_rows(ctx, visible, choice), top, block.count);
    in.mask = ggml_concat(ctx, block.raw, mask, 0);
}

ggml_tensor* attend(const Context& c, const weights::Attention& w, const Keys& k, int ratio, const QueryBlock& block) {
    ggml_context* ctx = c.b.ctx;
    ops::AttentionInput in{};
    in.q = view_range(ctx, k.q, 2, block.first, block.count);
    in.shared = view_range(ctx, k.raw, 1, block.first, c.hp.window + block.count);
    in.mask = block.raw;
    in.sinks = w.sinks;
    if (k.choices) choose(c, k, block, in);
    if (k.compressed) {
        in.shared = ggml_concat(ctx, in.shared, k.compressed, 1);
        in.mask = ratio == model::kCsaRatio ? block.csa_mask : block.hca_mask;
    }
    return ops::attention(c.b, in);
}

}  // namespace

ggml_tensor* query_rank(const Context& c, const weights::Attention& w, ggml_tensor* h) {
    return ops::rms_norm(c.b, ops::matmul(c.b, w.query_a, h), w.query_a_norm, c.hp.norm_epsilon);
}

ggml_tensor* query_heads(const Context& c, const weights::Attention& w, ggml_tensor* rank, int ratio) {
    ggml_tensor* q = ops::matmul(c.b, w.query_b, rank);
    q = ggml_reshape_3d(c.b.ctx, q, c.hp.head_size, c.hp.heads, rank->ne[1]);
    q = ops::rms_norm(c.b, q, nullptr, c.hp.norm_epsilon);
    return ops::rope_tail(c.b, q, c.in.positions, c.rope(ratio));
}

ggml_tensor* key_rows(const Context& c, const weights::Attention& w, ggml_tensor* h, ggml_tensor* positions,
                      int ratio) {
    ggml_context* ctx = c.b.ctx;
    ggml_tensor* kv = ops::rms_norm(c.b, ops::matmul(c.b, w.kv, h), w.kv_norm, c.hp.norm_epsilon);
    kv = ops::rope_tail(c.b, ggml_reshape_3d(ctx, kv, kv->ne[0], 1, kv->ne[1]), positions, c.rope(ratio));
    return ggml_reshape_2d(ctx, kv, kv->ne[0], kv->ne[2]);
}

ggml_tensor* attention_output(const Context& c, const weights::Attention& w, int ratio, ggml_tensor* inverse,
                              ggml_tensor* o) {
    ggml_context* ctx = c.b.ctx;
    o = ops::rope_tail(c.b, o, inverse, c.rope(ratio));
    ggml_tensor* grouped = ggml_reshape_3d(ctx, o, w.output_a->ne[0], c.hp.output_groups, o->ne[2]);
    ggml_tensor* low = ops::grouped_matmul(c.b, w.output_a, grouped);
    return ops::matmul(c.b, w.output_b, low);
}

ggml_tensor* attention_block(const Context& c, const weights::Attention& w, const state::LayerState& s, int ratio,
                             ggml_tensor* h) {
    ggml_context* ctx = c.b.ctx;
    ggml_tensor* rank = query_rank(c, w, h);
    Keys k{query_heads(c, w, rank, ratio), window_keys(c, w, s.raw, ratio, h)};
    if (ratio) compressor_block(c, w.compressor, s.compressor, ratio, c.hp.head_size, h);
    if (ratio == model::kCsaRatio) compressor_block(c, w.indexer.compressor, s.indexer, ratio, c.hp.index_size, h);
    const int64_t length = ratio ? c.shape.length(ratio) : 0;
    if (ratio == model::kCsaRatio && length > c.hp.index_top_k) {
        k.choices = view_range(ctx, s.compressor.rows, 1, 0, length);
        k.index_keys = view_range(ctx, s.indexer.rows, 1, 0, length);
        k.index = index_query(c, w.indexer, rank, h);
    } else if (length) {
        k.compressed = widened(c, view_range(ctx, s.compressor.rows, 1, 0, length));
    }
    ggml_tensor* y = nullptr;
    for (const QueryBlock& block : c.in.queries) {
        ggml_tensor* inverse = view_range(ctx, c.in.inverse, 0, block.first, block.count);
        ggml_tensor* part = attention_output(c, w, ratio, inverse, attend(c, w, k, ratio, block));
        y = y ? ggml_concat(ctx, y, part, 1) : part;
    }
    return y;
}

}  // namespace ds4::graph
