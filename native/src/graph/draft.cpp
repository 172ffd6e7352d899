#include "graph/draft.h"

#include <algorithm>
#include <cmath>

#include "drafter/weights.h"
#include "graph/blocks.h"
#include "graph/fill.h"
#include "graph/markov.h"

namespace ds4::graph {
namespace {

/// Features have an rms of the order of 10^3, which a product in F16 cannot hold; scaled by a power of two, with the
/// norm's epsilon, the result is the same to the last bit.
constexpr float kFeatureScale = 1.0f / 256;

DraftInputs create_inputs(ggml_context* ctx, const drafter::Hyperparameters& hp, const DraftShape& s,
                          const weights::DeviceMap& device_map) {
    const InputMaker input{ctx, device_map.head};
    const int64_t rows = hp.rows();
    DraftInputs in{};
    in.tokens = input(GGML_TYPE_I32, rows);
    const InputMaker beside_embedding{ctx, device_map.embedding};
    in.embedded = device_map.embedding == device_map.head ? in.tokens : beside_embedding(GGML_TYPE_I32, rows);
    in.positions = input(GGML_TYPE_I32, rows);
    in.inverse = input(GGML_TYPE_I32, rows);
    in.mask = input(GGML_TYPE_F32, state::context_capacity(hp) + rows, rows);
    if (!s.context) return in;
    in.features = input(GGML_TYPE_I32, s.context);
    in.slots = input(GGML_TYPE_I64, s.context);
    in.past = input(GGML_TYPE_I32, s.context);
    return in;
}

/// m = norm(W f) of the committed positions' features (docs/dspark.md section 2.2): [hidden, context].
ggml_tensor* fuse(const Context& c, const DraftSource& source, const DraftInputs& in) {
    const drafter::Weights& w = source.drafter.weights();
    ggml_tensor* f = ggml_scale(c.b.ctx, ggml_get_rows(c.b.ctx, source.state.features, in.features), kFeatureScale);
    return ops::rms_norm(c.b, ops::matmul(c.b, w.fusion, f), w.fusion_norm,
                         c.hp.norm_epsilon * kFeatureScale * kFeatureScale);
}

/// Writes the committed positions' keys to every stage's ring (docs/dspark.md section 2.3).
void write_context(const Context& c, const DraftSource& source, const DraftInputs& in) {
    ggml_tensor* m = fuse(c, source, in);
    for (int64_t s = 0; s < c.hp.layers; s++) {
        ggml_tensor* kv = key_rows(c, source.drafter.weights().stages[s].attention, m, in.past, 0);
        c.b.expanded(ggml_set_rows(c.b.ctx, source.state.context[s], kv, in.slots));
    }
}

/// Attention sub-layer of a stage on h [hidden, rows] (docs/dspark.md section 2.5).
ggml_tensor* draft_attention(const Context& c, const weights::Attention& w, ggml_tensor* ring, ggml_tensor* mask,
                             ggml_tensor* h) {
    ops::NoncausalInput in{};
    in.q = query_heads(c, w, query_rank(c, w, h), 0);
    in.ring = ring;
    in.block = key_rows(c, w, h, c.in.positions, 0);
    in.mask = mask;
    in.sinks = w.sinks;
    return attention_output(c, w, 0, c.in.inverse, ops::noncausal_attention(c.b, in));
}

/// The block's streams after all stages: [hidden, streams, rows].
ggml_tensor* run_stages(const Context& c, const DraftSource& source, const DraftInputs& in) {
    ggml_tensor* x = embed(c, source.target.embedding, in.embedded);
    for (int64_t s = 0; s < c.hp.layers; s++) {
        const weights::Layer& w = source.drafter.weights().stages[s];
        x = with_hyper_connections(c, x, w.hc_attention, w.attention.norm, [&](ggml_tensor* h) {
            return draft_attention(c, w.attention, source.state.context[s], in.mask, h);
        });
        x = with_hyper_connections(c, x, w.hc_ffn, w.moe.norm,
                                   [&](ggml_tensor* h) { return moe_block(c, w.moe, s, c.in.tokens, h); });
    }
    return x;
}

}  // namespace

size_t node_bound(const drafter::Hyperparameters& hp) {
    return hp.stages.layers * (200 + 2 * hp.stages.experts_used) + hp.block * 24 + 128;
}

Draft build_draft(ggml_context* ctx, const DraftSource& source, const DraftShape& shape) {
    const drafter::Hyperparameters& hp = source.drafter.hyperparameters();
    const drafter::Weights& w = source.drafter.weights();
    Draft d{};
    d.graph = ggml_new_graph_custom(ctx, node_bound(hp), false);
    d.in = create_inputs(ctx, hp, shape, source.target.device_map);
    Inputs rows;
    rows.tokens = d.in.tokens;
    rows.positions = d.in.positions;
    rows.inverse = d.in.inverse;
    const Shape block{hp.rows(), 0, 0, 0, 0, Logits::all, 0};
    Context c{
        {ctx, d.graph, source.target.device_map.kernel_choice(source.target.device_map.head)}, hp.stages, block, rows};
    if (source.own_attention) c.b.slots = &d.slots;
    if (shape.context) write_context(c, source, d.in);
    ggml_tensor* h = collapse_head(c, w.hc_head, run_stages(c, source, d.in));
    d.hidden = view_range(ctx, h, 1, hp.rows() - hp.block, hp.block);
    d.base = ops::matmul(c.b, source.target.output, ops::rms_norm(c.b, d.hidden, w.output_norm, c.hp.norm_epsilon));
    for (ggml_tensor* t : {d.hidden, d.base}) keep(c.b, t);
    if (shape.chained) markov_chain(c.b, source, shape, view_range(ctx, d.in.tokens, 0, 0, 1), d);
    return d;
}

void fill_draft_inputs(const DraftInputs& in, const drafter::Hyperparameters& hp, const DraftShape& s, int64_t position,
                       int64_t oldest, int32_t anchor) {
    const int64_t capacity = state::context_capacity(hp), first = position - s.context;
    const int64_t visible_from = std::max(oldest, position - hp.stages.window);
    const auto token = [&](int64_t i) { return i ? hp.noise : anchor; };
    fill<int32_t>(in.tokens, token);
    if (in.embedded != in.tokens) fill<int32_t>(in.embedded, token);
    fill<int32_t>(in.positions, [&](int64_t i) { return position + i; });
    fill<int32_t>(in.inverse, [&](int64_t i) { return -(position + i); });
    fill<int32_t>(in.features, [&](int64_t i) { return (first + i) % capacity; });
    fill<int64_t>(in.slots, [&](int64_t i) { return (first + i) % capacity; });
    fill<int32_t>(in.past, [&](int64_t i) { return first + i; });
    fill<float>(in.mask, [&](int64_t i) {
        const int64_t key = i % (capacity + hp.rows());
        if (key >= capacity) return 0.0f;
        const int64_t latest = position - 1 - mod(position - 1 - key, capacity);  // held by this slot
        return latest >= visible_from ? 0.0f : -INFINITY;
    });
}

}  // namespace ds4::graph
