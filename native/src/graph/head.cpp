#include "graph/blocks.h"

namespace ds4::graph {

ggml_tensor* collapse_head(const Context& c, const weights::HyperConnection& w, ggml_tensor* x) {
    return ops::hc_collapse(c.b, x, ops::hc_head_mix(c.b, x, {w.fn, w.base, w.scale}, c.hc()).pre);
}

ggml_tensor* head_block(const Context& c, const weights::Weights& w, ggml_tensor* x) {
    ggml_tensor* v = collapse_head(c, w.hc_head, x);
    return ops::matmul(c.b, w.output, ops::rms_norm(c.b, v, w.output_norm, c.hp.norm_epsilon));
}

}  // namespace ds4::graph
