#pragma once
// Compositions of ggml's operations for what the CPU kernels have nodes of their own.

#include "ops/ops.h"

namespace ds4::ops::generic {

/// As ops::attention.
ggml_tensor* attention(const Build& b, const AttentionInput& in);

}  // namespace ds4::ops::generic
