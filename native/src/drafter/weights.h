#pragma once
// The weights of a drafter by role (names and shapes: docs/dspark.md section 1.1).

#include <vector>

#include "drafter/hyperparameters.h"
#include "weights/packing.h"
#include "weights/weights.h"

namespace ds4::drafter {

/// Weights of a drafter. Shapes are in ggml's order, ne[0] first.
struct Weights {
    ggml_tensor *fusion, *fusion_norm;  // [taps * hidden, hidden]; [hidden]
    ggml_tensor* output_norm;           // [hidden]
    weights::HyperConnection hc_head;
    ggml_tensor* markov_embedding;  // W1 [rank, vocab]; null without a Markov head
    ggml_tensor* markov_output;     // W2 [rank, vocab]; null without a Markov head
    ggml_tensor* confidence;        // [hidden or hidden + rank, 1] F32; null without a confidence head
    ggml_tensor* confidence_bias;   // [1] F32; null when the bias is 0
    std::vector<weights::Layer> stages;
};

/// Creates one tensor of `ctx` for every role, as weights::describe_weights does for a target. Throws FormatError for a
/// missing or unknown tensor, and for a wrong shape or type.
Weights describe_weights(ggml_context* ctx, const gguf::File& file, const Names& names, const Hyperparameters& hp);

/// Returns the tensors that are used in matrix products only. The Markov matrices are not among them, because a
/// draft vocabulary looks up their rows.
std::vector<weights::Packable> packable(const Weights& weights, const model::Hyperparameters& target);

/// Returns the bytes of a no_alloc context for the tensors of describe_weights.
size_t context_size(const Hyperparameters& hp);

}  // namespace ds4::drafter
