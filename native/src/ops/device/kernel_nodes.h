#pragma once
// Nodes that a device's own kernels compute, between two segments of a graph.

#include "launcher.h"
#include "ops/ops.h"

namespace ds4::ops::device {

/// A node that a device's kernel computes. To ggml it is a copy of its first source: every backend has that, it costs
/// next to nothing, and the scheduler brings all sources to where it runs. Once the segment that ends with it has run,
/// `run` overwrites it.
struct Slot {
    const ggml_tensor* node;
    void (*run)(kernels::Launcher& launcher, const ggml_tensor* node);
};

/// Whether the kernels attend with heads of this size over a ring of this type.
bool attends(int64_t head_size, ggml_type ring);

/// Implements ops::noncausal_attention, in a slot of b.slots.
ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in);

/// A matrix as the kernels read it; nothing for null. Its type is one that readable() allows.
kernels::DeviceMatrix matrix(const ggml_tensor* t);
bool readable(ggml_type type);

}  // namespace ds4::ops::device
