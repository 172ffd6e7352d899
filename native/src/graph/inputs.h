#pragma once
// The tensors a graph reads that change from forward to forward: created once, refilled by position.

#include <span>
#include <vector>

#include "ggml-backend.h"
#include "graph/shape.h"

namespace ds4::graph {

/// Indices of one compressor ratio. "Joined" is the carry ring followed by the forward's own rows.
struct RatioInputs {
    ggml_tensor* ape = nullptr;       // [rows] I32: position mod ratio
    ggml_tensor* carry = nullptr;     // [kept] I64: ring slots of the last rows
    ggml_tensor* own = nullptr;       // [ratio * blocks] I32: joined rows of each block's positions
    ggml_tensor* previous = nullptr;  // [ratio * blocks] I32: those of the block before (CSA)
    ggml_tensor* missing = nullptr;   // [1, 2 * ratio, blocks] F32: -inf where block 0 has no block before (CSA)
    ggml_tensor* row = nullptr;       // [blocks] I64: where the finished rows go
    ggml_tensor* start = nullptr;     // [blocks] I32: the blocks' first positions, for RoPE
};

/// Masks of the query rows [first, first + count). Their window keys are W + count rows, of which the first is always
/// hidden: with it the count of keys is a round number, which products over keys are much faster for.
struct QueryBlock {
    int64_t first, count;
    ggml_tensor* raw = nullptr;          // [W+count, count] F32: window keys alone
    ggml_tensor* csa_mask = nullptr;     // [W+count + csa_length, count] F32: window and compressed keys
    ggml_tensor* hca_mask = nullptr;     // likewise
    ggml_tensor* csa_visible = nullptr;  // [csa_length, count] F16: blocks the indexer may choose
};

struct Inputs {
    ggml_tensor* tokens = nullptr;     // [rows] I32
    ggml_tensor* positions = nullptr;  // [rows] I32
    ggml_tensor* inverse = nullptr;    // [rows] I32: negated positions
    ggml_tensor* window = nullptr;     // [W] I32: ring slots of the positions before the first row, in order
    ggml_tensor* ring = nullptr;       // [kept] I64: ring slots of the last rows
    ggml_tensor* features = nullptr;   // [features] I64: slots of the last rows in the feature ring
    RatioInputs csa, hca;
    std::vector<QueryBlock> queries;

    const RatioInputs& of(int ratio) const { return ratio == model::kCsaRatio ? csa : hca; }
};

/// Creates the inputs of a shape on one device.
Inputs create_inputs(ggml_context* ctx, const model::Hyperparameters& hp, const Shape& shape, int device = 0);

/// Fills them for `tokens` at positions `position`...; inputs the graph does not use are skipped.
/// `feature_capacity` is the rows of the feature ring, 0 without one.
void fill_inputs(const Inputs& in, const model::Hyperparameters& hp, const Shape& shape, int64_t position,
                 std::span<const int32_t> tokens, int64_t feature_capacity = 0);

}  // namespace ds4::graph
