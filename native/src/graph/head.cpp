#include "graph/blocks.h"

namespace ds4::graph {

ggml_tensor* head_block(const Context& c, const model::Weights& w, ggml_tensor* x) {
    const ops::HcMix mix = ops::hc_head_mix(c.b, x, {w.hc_head.fn, w.hc_head.base, w.hc_head.scale}, c.hc());
    ggml_tensor* v = ops::hc_collapse(c.b, x, mix.pre);
    return ggml_mul_mat(c.b.ctx, w.output, ops::rms_norm(c.b, v, w.output_norm, c.hp.norm_epsilon));
}

}  // namespace ds4::graph
