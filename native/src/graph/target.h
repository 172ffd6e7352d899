#pragma once
// The target's forward pass as one ggml graph.

#include <algorithm>
#include <span>

#include "graph/inputs.h"
#include "state/state.h"
#include "weights/weights.h"

namespace ds4::graph {

/// A built graph: fill the inputs, compute, read the logits.
struct Target {
    ggml_cgraph* graph;
    std::vector<Inputs> in;         // by device index; those that nothing reads have no memory
    ggml_tensor* logits = nullptr;  // [vocab, 1 or rows] F32; null when none were asked for
};

/// The layers whose streams a drafter reads, and the ring that keeps them (docs/dspark.md section 2.1).
struct Taps {
    std::span<const int64_t> layers;  // in order; empty without a drafter
    ggml_tensor* ring = nullptr;      // [layers * hidden, capacity] F32

    bool has(int64_t layer) const { return std::ranges::find(layers, layer) != layers.end(); }
};

/// An upper bound of the nodes in a graph of this shape.
size_t node_bound(const model::Hyperparameters& hp, const Shape& shape);

/// Builds the graph of `shape` in `ctx` (no_alloc) over the given weights and state; shape.features rows are tapped.
Target build_target(ggml_context* ctx, const model::Hyperparameters& hp, const weights::Weights& weights,
                    const std::vector<state::LayerState>& state, const Taps& taps, const Shape& shape);

}  // namespace ds4::graph
