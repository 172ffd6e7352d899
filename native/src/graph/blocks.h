#pragma once
// The blocks of a layer; target.cpp puts them together.

#include "graph/inputs.h"
#include "ops/ops.h"
#include "state/state.h"
#include "weights/weights.h"

namespace ds4::graph {

/// The arguments that every block is built with: the builder, the model's hyperparameters, the shape and the inputs.
struct Context {
    ops::Build b;
    const model::Hyperparameters& hp;
    const Shape& shape;
    const Inputs& in;

    /// RoPE of a layer: plain where nothing is compressed, the compress base (with YaRN) elsewhere (docs/model.md
    /// section 2.3).
    ops::Rope rope(int ratio) const;
    ops::HcOptions hc() const;
};

/// A view of the elements [first, first + count) along axis 0, 1 or 2, the outermost one of x.
ggml_tensor* view_range(ggml_context* ctx, ggml_tensor* x, int axis, int64_t first, int64_t count);

/// The embeddings of tokens [n] on every stream (M1): [hidden, streams, n].
ggml_tensor* embed(const Context& c, ggml_tensor* embedding, ggml_tensor* tokens);

/// x -> x' around a sub-layer (M8)-(M10): sublayer maps the normed collapse [hidden, n] to its output.
template <typename F>
ggml_tensor* with_hyper_connections(const Context& c, ggml_tensor* x, const weights::HyperConnection& w,
                                    ggml_tensor* norm, F sublayer) {
    const ops::HcInput in = ops::hc_open(c.b, x, {w.fn, w.base, w.scale}, norm, c.hc());
    return ops::hc_expand(c.b, sublayer(in.h), x, in.mix);
}

/// Low-rank queries of h [hidden, n] before the heads: [query_rank, n].
ggml_tensor* query_rank(const Context& c, const weights::Attention& w, ggml_tensor* h);
/// Normed, rotated query heads of the rank: [head_size, heads, n].
ggml_tensor* query_heads(const Context& c, const weights::Attention& w, ggml_tensor* rank, int ratio);
/// Keys, which are values too, of h [hidden, n] at `positions` [n]: [head_size, n].
ggml_tensor* key_rows(const Context& c, const weights::Attention& w, ggml_tensor* h, ggml_tensor* positions, int ratio);
/// Inverse RoPE by `inverse` [n] and the grouped low-rank output (M19), (M20) of o [head_size, heads, n]: [hidden, n].
ggml_tensor* attention_output(const Context& c, const weights::Attention& w, int ratio, ggml_tensor* inverse,
                              ggml_tensor* o);

/// Attention sub-layer on h [hidden, n]: writes the layer's state, returns [hidden, n].
ggml_tensor* attention_block(const Context& c, const weights::Attention& w, const state::LayerState& s, int ratio,
                             ggml_tensor* h);

/// Carries this forward's rows and finishes the blocks that end in it (docs/model.md section 2.5); size is the
/// compressed row's.
void compressor_block(const Context& c, const weights::Compressor& w, const state::CompressorState& s, int ratio,
                      int64_t size, ggml_tensor* h);

/// Index queries and head weights of a CSA layer (docs/model.md section 2.6).
struct IndexQuery {
    ggml_tensor* q;        // [index_size, index_heads, n]
    ggml_tensor* weights;  // [index_heads, n]
};
IndexQuery index_query(const Context& c, const weights::Indexer& w, ggml_tensor* query_rank, ggml_tensor* h);
/// The blocks each query of `block` chooses: [top_k, count] I32.
ggml_tensor* index_choice(const Context& c, const IndexQuery& query, ggml_tensor* keys, const QueryBlock& block);

/// MoE sub-layer on h [hidden, n] for the given tokens [n] (hash layers route by them).
ggml_tensor* moe_block(const Context& c, const weights::Moe& w, int64_t layer, ggml_tensor* tokens, ggml_tensor* h);

/// Collapses the streams x [hidden, streams, n] to one row each: [hidden, n], before any norm (docs/model.md
/// section 2.8).
ggml_tensor* collapse_head(const Context& c, const weights::HyperConnection& w, ggml_tensor* x);
/// Logits [vocab, n] from the streams x [hidden, streams, n] (docs/model.md section 2.8).
ggml_tensor* head_block(const Context& c, const weights::Weights& w, ggml_tensor* x);

}  // namespace ds4::graph
