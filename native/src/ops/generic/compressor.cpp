#include "ops/generic/nodes.h"

namespace ds4::ops::generic {
namespace {

/// Rows at `index`, columns [offset, offset + size), as [size, slots, blocks].
ggml_tensor* gather(const Build& b, const CompressInput& in, ggml_tensor* joined, ggml_tensor* index, int64_t offset) {
    ggml_tensor* columns =
        ggml_view_2d(b.ctx, joined, in.size, joined->ne[1], joined->nb[1], offset * ggml_element_size(joined));
    ggml_tensor* rows = ggml_get_rows(b.ctx, columns, index);
    return ggml_reshape_3d(b.ctx, rows, in.size, index->ne[0] / in.blocks, in.blocks);
}

/// The slots of every finished block: the first halves of the block before, then the second halves of its own
/// positions (M23); or its own positions alone (M22).
ggml_tensor* slots(const Build& b, const CompressInput& in, ggml_tensor* ring, ggml_tensor* rows) {
    ggml_tensor* joined = ggml_concat(b.ctx, ring, rows, 1);
    if (!in.previous) return gather(b, in, joined, in.own, 0);
    ggml_tensor* previous = gather(b, in, joined, in.previous, 0);
    return ggml_concat(b.ctx, previous, gather(b, in, joined, in.own, in.size), 1);
}

/// [size, slots, blocks] -> [slots, size, blocks], so that a softmax over the slots runs along ne0.
ggml_tensor* slots_first(const Build& b, ggml_tensor* x) {
    return ggml_cont(b.ctx, ggml_permute(b.ctx, x, 1, 0, 2, 3));
}

}  // namespace

ggml_tensor* compress(const Build& b, const CompressInput& in) {
    ggml_tensor* kv = slots(b, in, in.ring_kv, in.kv);
    ggml_tensor* score = slots(b, in, in.ring_score, in.score);
    if (in.missing) score = ggml_add(b.ctx, score, in.missing);
    ggml_tensor* weights = ggml_soft_max(b.ctx, slots_first(b, score));
    ggml_tensor* weighted = ggml_mul(b.ctx, weights, slots_first(b, kv));
    return ggml_reshape_2d(b.ctx, ggml_sum_rows(b.ctx, weighted), in.size, in.blocks);
}

}  // namespace ds4::ops::generic
