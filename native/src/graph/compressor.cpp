#include "graph/blocks.h"

namespace ds4::graph {
namespace {

/// Rows of `joined` at `index`, columns [offset, offset + size), as [size, slots, blocks].
ggml_tensor* gather(const Context& c, ggml_tensor* joined, ggml_tensor* index, int64_t offset, int64_t size,
                    int64_t blocks) {
    ggml_tensor* columns =
        ggml_view_2d(c.b.ctx, joined, size, joined->ne[1], joined->nb[1], offset * ggml_element_size(joined));
    ggml_tensor* rows = ggml_get_rows(c.b.ctx, columns, index);
    return ggml_reshape_3d(c.b.ctx, rows, size, index->ne[0] / blocks, blocks);
}

/// The slots of every finished block: for ratio 4 the first halves of the block before, then the second halves of
/// its own positions (23); for ratio 128 its own positions (22).
ggml_tensor* slots(const Context& c, ggml_tensor* ring, ggml_tensor* rows, int ratio, int64_t size) {
    const RatioInputs& in = c.in.of(ratio);
    const int64_t blocks = c.shape.blocks(ratio);
    ggml_tensor* joined = ggml_concat(c.b.ctx, ring, rows, 1);
    if (ratio != 4) return gather(c, joined, in.own, 0, size, blocks);
    ggml_tensor* previous = gather(c, joined, in.previous, 0, size, blocks);
    return ggml_concat(c.b.ctx, previous, gather(c, joined, in.own, size, size, blocks), 1);
}

void finish_blocks(const Context& c, const model::Compressor& w, const state::CompressorState& s, int ratio,
                   int64_t size, ggml_tensor* kv, ggml_tensor* score) {
    ggml_context* ctx = c.b.ctx;
    const RatioInputs& in = c.in.of(ratio);
    ggml_tensor* kv_slots = slots(c, s.kv, kv, ratio, size);
    ggml_tensor* rows = ops::compress(c.b, kv_slots, slots(c, s.score, score, ratio, size), in.missing);
    rows = ops::rms_norm(c.b, rows, w.norm, c.hp.norm_epsilon);
    rows = ops::rope_tail(c.b, ggml_reshape_3d(ctx, rows, size, 1, rows->ne[1]), in.start, c.rope(ratio));
    c.b.now(ggml_set_rows(ctx, s.rows, ggml_reshape_2d(ctx, rows, size, rows->ne[2]), in.row));
}

}  // namespace

void compressor_block(const Context& c, const model::Compressor& w, const state::CompressorState& s, int ratio,
                      int64_t size, ggml_tensor* h) {
    ggml_context* ctx = c.b.ctx;
    const RatioInputs& in = c.in.of(ratio);
    ggml_tensor* kv = ops::product(c.b, w.kv, h);
    ggml_tensor* score = ggml_add(ctx, ops::product(c.b, w.gate, h), ggml_get_rows(ctx, w.ape, in.ape));
    if (c.shape.blocks(ratio)) finish_blocks(c, w, s, ratio, size, kv, score);
    // The rings are read above before they are written here.
    const int64_t kept = in.carry->ne[0], first = kv->ne[1] - kept;
    c.b.now(ggml_set_rows(ctx, s.kv, cut(ctx, kv, 1, first, kept), in.carry));
    c.b.now(ggml_set_rows(ctx, s.score, cut(ctx, score, 1, first, kept), in.carry));
}

}  // namespace ds4::graph
