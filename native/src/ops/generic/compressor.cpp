#include "ops/ops.h"

namespace ds4::ops {
namespace {

/// [size, slots, blocks] -> [slots, size, blocks], so that a softmax over the slots runs along ne0.
ggml_tensor* slots_first(const Build& b, ggml_tensor* x) {
    return ggml_cont(b.ctx, ggml_permute(b.ctx, x, 1, 0, 2, 3));
}

}  // namespace

ggml_tensor* compress(const Build& b, ggml_tensor* kv, ggml_tensor* score, ggml_tensor* mask) {
    if (mask) score = ggml_add(b.ctx, score, mask);
    ggml_tensor* weights = ggml_soft_max(b.ctx, slots_first(b, score));
    ggml_tensor* weighted = ggml_mul(b.ctx, weights, slots_first(b, kv));
    return ggml_reshape_2d(b.ctx, ggml_sum_rows(b.ctx, weighted), kv->ne[0], kv->ne[2]);
}

}  // namespace ds4::ops
