#pragma once
// A cache of built graphs by shape; the least recently used one makes room.

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "ds4/model.h"

namespace ds4::session {

/// The most graphs of one kind that a session keeps. Decode and verify alternate between a few shapes, which differ in
/// the number of rows and in completed blocks, and whose lengths grow with the state.
constexpr size_t kGraphsKept = 24;

/// A graph with the memory that it runs in. Graph is a struct with a member `graph`.
template <typename Shape, typename Graph>
struct Plan {
    Shape shape;
    ggml_context_ptr ctx;
    Graph built;
    ggml_backend_sched_ptr scheduler;
    size_t input_bytes = 0;  // bytes that every run copies to the inputs
};

/// Returns the bytes of the inputs that a graph reads.
size_t input_bytes(ggml_context* ctx);

/// Makes a context without tensor memory for a graph of at most `nodes` nodes. Throws BackendError.
ggml_context_ptr graph_context(size_t nodes);
ggml_backend_sched_ptr graph_scheduler(const std::vector<ggml_backend_ptr>& backends, size_t nodes);
/// Assigns each input to the backend of the device that reads it. Assigns custom nodes, which call functions of this
/// process, to the CPU, the last backend, even if another device claims to support them.
void assign_nodes(ggml_backend_sched_t scheduler, ggml_cgraph* graph);

/// Builds the graph of a shape and a scheduler for it; memory is not yet allocated.
template <typename Shape, typename Build>
auto build_plan(const std::vector<ggml_backend_ptr>& backends, const Shape& shape, size_t nodes, Build build) {
    ggml_context_ptr ctx = graph_context(nodes);
    auto built = build(ctx.get());
    ggml_backend_sched_ptr scheduler = graph_scheduler(backends, nodes);
    assign_nodes(scheduler.get(), built.graph);
    return std::make_unique<Plan<Shape, decltype(built)>>(shape, std::move(ctx), std::move(built),
                                                          std::move(scheduler));
}

template <typename Shape, typename Graph>
class GraphCache {
   public:
    using Entry = Plan<Shape, Graph>;
    explicit GraphCache(std::function<std::unique_ptr<Entry>(const Shape&)> build) : build_(std::move(build)) {}

    /// Returns the plan of a shape, which is built on first use. Throws BackendError if there is no memory for it.
    Entry& get(const Shape& shape) {
        for (auto it = plans_.begin(); it != plans_.end(); ++it) {
            if ((*it)->shape != shape) continue;
            plans_.splice(plans_.begin(), plans_, it);
            return *plans_.front();
        }
        make_room(shape);
        std::unique_ptr<Entry> plan = build_(shape);
        if (!ggml_backend_sched_alloc_graph(plan->scheduler.get(), plan->built.graph)) {
            throw BackendError("no memory to run a graph of " + std::to_string(ggml_graph_n_nodes(plan->built.graph)) +
                               " nodes: use a smaller context, or a device with more memory");
        }
        plan->input_bytes = input_bytes(plan->ctx.get());
        plans_.push_front(std::move(plan));
        return *plans_.front();
    }

    /// The plans in the cache, the most recently used first.
    const std::list<std::unique_ptr<Entry>>& kept() const { return plans_; }

   private:
    void make_room(const Shape& shape) {
        // Prompt chunks need far more memory than decoding, and their shapes are rarely used again.
        if (shape.wide()) plans_.remove_if([](const auto& p) { return p->shape.wide(); });
        while (plans_.size() >= kGraphsKept) plans_.pop_back();
    }

    std::function<std::unique_ptr<Entry>(const Shape&)> build_;
    std::list<std::unique_ptr<Entry>> plans_;  // most recently used first
};

}  // namespace ds4::session
