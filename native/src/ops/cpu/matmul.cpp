#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

void quantise_rows(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor* x = out->src[0];
    const Part part(x->ne[1], ith, nth);
    for (int64_t i = part.first; i < part.last; i++) {
        kernels().quantise(row(x, i), x->ne[0], row<char>(out, i));
    }
}

/// Tiles of all matrices are shared out in one sequence.
void multiply(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *w = out->src[0], *rows = out->src[1];
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    const int64_t tiles = kernels::tiles(packed.rows);
    const Part part(tiles * packed.count, ith, nth);
    for (int64_t i = part.first / tiles; i < packed.count && i * tiles < part.last; i++) {
        const int64_t first = std::max<int64_t>(part.first - i * tiles, 0),
                      last = std::min(part.last - i * tiles, tiles);
        const kernels::Rows inputs{static_cast<const char*>(rows->data) + i * rows->nb[1], rows->nb[1] * packed.count,
                                   out->ne[1]};
        const kernels::Outputs outputs{static_cast<float*>(out->data) + i * packed.rows, out->ne[0]};
        kernels().matmul(packed.matrix(w, i), inputs, first, last, outputs);
    }
}

}  // namespace

const kernels::Kernels& kernels() { return *kernels::available().front(); }

ggml_tensor* rows_for(const Build& b, kernels::Format format, ggml_tensor* x) {
    ggml_tensor* flat = ggml_is_contiguous(x) ? x : ggml_cont(b.ctx, x);
    if (!kernels::takes_quantised(format)) return flat;
    ggml_tensor*& quantised = b.shared->quantised[x];
    if (!quantised) {
        flat = ggml_reshape_2d(b.ctx, flat, x->ne[0], ggml_nrows(x));
        quantised = node(b, GGML_TYPE_I8, {static_cast<int64_t>(kernels::quantised_bytes(x->ne[0])), flat->ne[1]},
                         {flat}, quantise_rows);
    }
    return quantised;
}

ggml_tensor* matmul(const Build& b, ggml_tensor* w, ggml_tensor* x) {
    const kernels::PackedTensor& packed = *kernels::packed_of(w);
    ggml_tensor* rows = rows_for(b, packed.format, x);
    if (rows->type == GGML_TYPE_F32) rows = ggml_reshape_2d(b.ctx, rows, x->ne[0], ggml_nrows(x));
    return node(b, GGML_TYPE_F32, {packed.rows * packed.count, ggml_nrows(x) / packed.count}, {w, rows}, multiply);
}

}  // namespace ds4::ops::cpu
