#pragma once
// The drafter's tensors by role (names and shapes: docs/dspark.md section 1.1).

#include <vector>

#include "drafter/hyperparameters.h"
#include "weights/packing.h"
#include "weights/weights.h"

namespace ds4::drafter {

struct Weights {
    ggml_tensor *fusion, *fusion_norm;  // [taps * hidden, hidden]; [hidden]
    ggml_tensor* output_norm;           // [hidden]
    weights::HyperConnection hc_head;
    ggml_tensor* markov_embedding;  // W1 [rank, vocab]; null without a Markov head
    ggml_tensor* markov_output;     // W2 [rank, vocab]; likewise
    ggml_tensor* confidence;        // [hidden or hidden + rank, 1] F32; null without a confidence head
    ggml_tensor* confidence_bias;   // [1] F32; null is zero
    std::vector<weights::Layer> stages;
};

/// As weights::describe_weights; throws FormatError for a missing or unknown tensor, a wrong shape or type.
Weights describe_weights(ggml_context* ctx, const gguf::File& file, const Names& names, const Hyperparameters& hp);

/// The tensors that only products read. The heads are looked up, too, where a shortlist is used.
std::vector<weights::Packable> packable(const Weights& weights, const model::Hyperparameters& target);

/// Bytes a no_alloc context needs to hold the tensors of describe_weights.
size_t context_size(const Hyperparameters& hp);

}  // namespace ds4::drafter
