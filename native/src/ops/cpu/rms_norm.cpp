#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

void normalise(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *x = out->src[0], *weight = out->src[1];
    const Part part(ggml_nrows(x), ith, nth);
    for (int64_t i = part.first; i < part.last; i++) {
        const int64_t at = i % x->ne[1], matrix = i / x->ne[1];
        kernels().rms_norm(row(x, at, matrix), weight ? row(weight, 0) : nullptr, x->ne[0], options_of<float>(out),
                           row<float>(out, at, matrix));
    }
}

}  // namespace

ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon) {
    return node(b, GGML_TYPE_F32, {x->ne[0], x->ne[1], x->ne[2]}, {x, weight}, normalise, epsilon);
}

}  // namespace ds4::ops::cpu
