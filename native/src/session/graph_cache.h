#pragma once
// Built graphs by shape, least recently used out.

#include <list>
#include <memory>
#include <vector>

#include "ds4/model.h"
#include "graph/target.h"

namespace ds4::session {

/// A graph with the memory it runs in.
struct Plan {
    graph::Shape shape;
    ggml_context_ptr ctx;
    graph::Target target;
    ggml_backend_sched_ptr scheduler;
};

/// Builds the graph of a shape and a scheduler for it; memory is not yet allocated.
std::unique_ptr<Plan> build_plan(const model::Hyperparameters& hp, const model::Weights& weights,
                                 const std::vector<state::LayerState>& state,
                                 const std::vector<ggml_backend_ptr>& backends, const graph::Shape& shape);

class GraphCache {
   public:
    GraphCache(const Model& model, const state::State& state, const std::vector<ggml_backend_ptr>& backends)
        : model_(model), state_(state), backends_(backends) {}

    /// The plan of a shape, built on first use. Throws BackendError when there is no memory for it.
    Plan& get(const graph::Shape& shape);

   private:
    void make_room(const graph::Shape& shape);

    const Model& model_;
    const state::State& state_;
    const std::vector<ggml_backend_ptr>& backends_;
    std::list<std::unique_ptr<Plan>> plans_;  // most recently used first
};

}  // namespace ds4::session
