#include "graph/blocks.h"

namespace ds4::graph {
namespace {

void finish_blocks(const Context& c, const weights::Compressor& w, const state::CompressorState& s, int ratio,
                   int64_t size, ggml_tensor* kv, ggml_tensor* score) {
    ggml_context* ctx = c.b.ctx;
    const RatioInputs& in = c.in.of(ratio);
    ggml_tensor* rows =
        ops::compress(c.b, {s.kv, s.score, kv, score, in.own, in.previous, in.missing, size, c.shape.blocks(ratio)});
    rows = ops::rms_norm(c.b, rows, w.norm, c.hp.norm_epsilon);
    rows = ops::rope_tail(c.b, ggml_reshape_3d(ctx, rows, size, 1, rows->ne[1]), in.start, c.rope(ratio));
    c.b.expanded(ggml_set_rows(ctx, s.rows, ggml_reshape_2d(ctx, rows, size, rows->ne[2]), in.row));
}

}  // namespace

void compressor_block(const Context& c, const weights::Compressor& w, const state::CompressorState& s, int ratio,
                      int64_t size, ggml_tensor* h) {
    ggml_context* ctx = c.b.ctx;
    const RatioInputs& in = c.in.of(ratio);
    ggml_tensor* kv = ops::matmul(c.b, w.kv, h);
    ggml_tensor* score = ggml_add(ctx, ops::matmul(c.b, w.gate, h), ggml_get_rows(ctx, w.ape, in.ape));
    if (c.shape.blocks(ratio)) finish_blocks(c, w, s, ratio, size, kv, score);
    // The rings are read above before they are written here.
    const int64_t kept = in.carry->ne[0], first = kv->ne[1] - kept;
    c.b.expanded(ggml_set_rows(ctx, s.kv, view_range(ctx, kv, 1, first, kept), in.carry));
    c.b.expanded(ggml_set_rows(ctx, s.score, view_range(ctx, score, 1, first, kept), in.carry));
}

}  // namespace ds4::graph
