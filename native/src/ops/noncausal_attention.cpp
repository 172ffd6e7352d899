#include "ops/device/kernel_nodes.h"
#include "ops/generic/nodes.h"

namespace ds4::ops {

ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in) {
    const bool own = b.slots && device::attends(in.q->ne[0], in.ring->type);
    return own ? device::noncausal_attention(b, in) : generic::noncausal_attention(b, in);
}

}  // namespace ds4::ops
