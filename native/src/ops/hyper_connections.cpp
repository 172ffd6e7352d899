#include "ops/cpu/nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options) {
    const kernels::PackedTensor* fn = kernels::packed_of(w.fn);
    const bool own = fn && !kernels::takes_quantised(fn->format) && x->ne[1] <= cpu::kMostStreams;
    return own ? cpu::hc_open(b, x, w, norm, options) : generic::hc_open(b, x, w, norm, options);
}

ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix) {
    const bool own = b.own_kernels && x->ne[1] <= cpu::kMostStreams;
    return own ? cpu::hc_expand(b, y, x, mix) : generic::hc_expand(b, y, x, mix);
}

}  // namespace ds4::ops
