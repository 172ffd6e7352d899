#pragma once
// Nodes that the CPU kernels compute. ggml's threads run them; a scheduler keeps them on the CPU.

#include "cpu/packed_tensor.h"
#include "ops/ops.h"

namespace ds4::ops::cpu {

/// Part `ith` of `nth` of [0, count).
struct Part {
    int64_t first, last;
    Part(int64_t count, int ith, int nth) : first(count * ith / nth), last(count * (ith + 1) / nth) {}
};

/// The kernels that all nodes use: the fastest this processor runs.
const kernels::Kernels& kernels();

/// Rows of x [columns, ...] as products of packed weights of this format read them; x itself for floats. Quantised
/// once, however many products read it.
ggml_tensor* rows_for(const Build& b, kernels::Format format, ggml_tensor* x);

/// W x for packed W and x [columns, n]; with g matrices in W, x [columns, g, n] and each has inputs of its own.
/// Returns [rows * g, n].
ggml_tensor* product(const Build& b, ggml_tensor* w, ggml_tensor* x);

/// As ops::attention. Reads only the keys that a query sees.
ggml_tensor* attention(const Build& b, const AttentionInput& in);

/// As ops::top_rows.
ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count);

/// As ops::expert_product, for packed W: reads the matrices that any row has chosen, each once.
ggml_tensor* expert_product(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection);

}  // namespace ds4::ops::cpu
