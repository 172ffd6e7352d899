#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask) {
    const bool fits = q->ne[0] % kernels::kTile == 0;  // of any real model, 128
    return b.own_kernels && fits ? cpu::index_scores(b, q, keys, weights, mask)
                                 : generic::index_scores(b, q, keys, weights, mask);
}

}  // namespace ds4::ops
