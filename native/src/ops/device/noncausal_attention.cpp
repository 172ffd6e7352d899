#include <cmath>

#include "ops/device/kernel_nodes.h"

namespace ds4::ops::device {
namespace {

constexpr int64_t kLargestHead = 512;

/// Kernels read rows without gaps.
ggml_tensor* packed(const Build& b, ggml_tensor* x) { return ggml_is_contiguous(x) ? x : ggml_cont(b.ctx, x); }

const float* floats(const ggml_tensor* t) { return static_cast<const float*>(t->data); }

void run(kernels::Launcher& launcher, const ggml_tensor* node) {
    const ggml_tensor* q = node->src[0];
    kernels::DraftAttention work{};
    work.q = floats(q);
    work.ring = matrix(node->src[1]);
    work.block = floats(node->src[2]);
    work.mask = floats(node->src[3]);
    work.sinks = floats(node->src[4]);
    work.out = static_cast<float*>(node->data);
    work.size = static_cast<int32_t>(q->ne[0]);
    work.heads = static_cast<int32_t>(q->ne[1]);
    work.n = static_cast<int32_t>(q->ne[2]);
    work.scale = 1 / std::sqrt(static_cast<float>(work.size));
    launcher.run(work);
}

}  // namespace

bool attends(int64_t head_size, ggml_type ring) {
    return head_size <= kLargestHead && (ring == GGML_TYPE_F16 || ring == GGML_TYPE_F32);
}

ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in) {
    ggml_tensor* node = ggml_cont(b.ctx, packed(b, in.q));
    node->src[1] = in.ring;
    node->src[2] = packed(b, in.block);
    node->src[3] = in.mask;
    node->src[4] = in.sinks;
    b.slots->push_back({node, run});
    return node;
}

}  // namespace ds4::ops::device
