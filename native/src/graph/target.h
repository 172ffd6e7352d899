#pragma once
// The target's forward pass as one ggml graph.

#include "graph/inputs.h"
#include "model/weights.h"
#include "state/state.h"

namespace ds4::graph {

/// A built graph: fill the inputs, compute, read the logits.
struct Target {
    ggml_cgraph* graph;
    Inputs in;
    ggml_tensor* logits = nullptr;  // [vocab, 1 or rows] F32; null when none were asked for
};

/// More nodes than a graph of this shape has.
size_t node_bound(const model::Hyperparameters& hp, const Shape& shape);

/// Builds the graph of `shape` in `ctx` (no_alloc) over the given weights and state.
Target build_target(ggml_context* ctx, const model::Hyperparameters& hp, const model::Weights& weights,
                    const std::vector<state::LayerState>& state, const Shape& shape);

}  // namespace ds4::graph
