#include <algorithm>

#include "ops/cpu/groups.h"

namespace ds4::ops::cpu {
namespace {

/// The tiles of all chosen experts are shared out in one sequence: each has as many bytes.
void multiply_experts(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *w = out->src[0], *x = out->src[1], *selection = out->src[2];
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    thread_local Groups groups;
    groups.make(selection, packed.count);
    const bool own = ggml_nrows(x) == ggml_nelements(selection);  // an input row for each choice
    const int64_t tiles = kernels::tiles(packed.rows);
    const Part part(tiles * std::ssize(groups.experts), ith, nth);
    for (int64_t i = part.first / tiles; i < std::ssize(groups.experts) && i * tiles < part.last; i++) {
        const int64_t first = std::max<int64_t>(part.first - i * tiles, 0),
                      last = std::min(part.last - i * tiles, tiles);
        const int32_t *choices = &groups.choices[groups.first[i]], *rows = &groups.rows[groups.first[i]];
        const kernels::Rows inputs{x->data, x->nb[1], groups.size(i), own ? choices : rows};
        const kernels::Outputs outputs{static_cast<float*>(out->data), out->ne[0], choices};
        kernels().matmul(packed.matrix(w, groups.experts[i]), inputs, first, last, outputs);
    }
}

}  // namespace

ggml_tensor* expert_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection) {
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    return node(b, GGML_TYPE_F32, {packed.rows, selection->ne[0], selection->ne[1]},
                {w, rows_for(b, packed.format, x), selection}, multiply_experts);
}

}  // namespace ds4::ops::cpu
