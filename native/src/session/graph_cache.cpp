#include "session/graph_cache.h"

namespace ds4::session {
namespace {

/// Decode and verify alternate between a handful of shapes (does a block end inside or not).
constexpr size_t kKept = 16;

bool wide(const graph::Shape& s) { return s.rows > state::kMaxRows; }

}  // namespace

std::unique_ptr<Plan> build_plan(const model::Hyperparameters& hp, const model::Weights& weights,
                                 const std::vector<state::LayerState>& state,
                                 const std::vector<ggml_backend_ptr>& backends, const graph::Shape& shape) {
    const size_t nodes = graph::node_bound(hp, shape);
    auto plan = std::make_unique<Plan>();
    plan->shape = shape;
    plan->ctx.reset(
        ggml_init({2 * nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
    if (!plan->ctx) throw BackendError("no memory for a graph of " + std::to_string(shape.rows) + " rows");
    plan->target = graph::build_target(plan->ctx.get(), hp, weights, state, shape);
    std::vector<ggml_backend_t> list;
    for (const ggml_backend_ptr& b : backends) list.push_back(b.get());
    plan->scheduler.reset(
        ggml_backend_sched_new(list.data(), nullptr, static_cast<int>(list.size()), 2 * nodes, false, true));
    return plan;
}

Plan& GraphCache::get(const graph::Shape& shape) {
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
        if ((*it)->shape != shape) continue;
        plans_.splice(plans_.begin(), plans_, it);
        return *plans_.front();
    }
    make_room(shape);
    auto plan = build_plan(model_.hyperparameters(), model_.weights(), state_.layers(), backends_, shape);
    if (!ggml_backend_sched_alloc_graph(plan->scheduler.get(), plan->target.graph)) {
        throw BackendError("no memory to run " + std::to_string(shape.rows) + " rows at once on " +
                           model_.device_name());
    }
    plans_.push_front(std::move(plan));
    return *plans_.front();
}

void GraphCache::make_room(const graph::Shape& shape) {
    // Prompt chunks need far more memory than decoding, and no two of a prompt have the same shape for long.
    if (wide(shape)) plans_.remove_if([](const auto& p) { return wide(p->shape); });
    while (plans_.size() >= kKept) plans_.pop_back();
}

}  // namespace ds4::session
