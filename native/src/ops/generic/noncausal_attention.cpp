#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* generic::noncausal_attention(const Build& b, const NoncausalInput& in) {
    ggml_tensor* ring = in.ring->type == GGML_TYPE_F32 ? in.ring : ggml_cast(b.ctx, in.ring, GGML_TYPE_F32);
    AttentionInput keys{};
    keys.q = in.q;
    keys.shared = ggml_concat(b.ctx, ring, in.block, 1);
    keys.mask = in.mask;
    keys.sinks = in.sinks;
    return ops::attention(b, keys);
}

}  // namespace ds4::ops
