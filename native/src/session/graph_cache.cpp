#include "session/graph_cache.h"

#include <algorithm>

#include "ds4/errors.h"
#include "graph/fill.h"

namespace ds4::session {
namespace {

/// Whether a node is a function of this process.
bool is_custom(const ggml_tensor* node) {
    constexpr ggml_op ours[] = {GGML_OP_CUSTOM, GGML_OP_MAP_CUSTOM1, GGML_OP_MAP_CUSTOM2, GGML_OP_MAP_CUSTOM3};
    return std::ranges::find(ours, node->op) != std::end(ours);
}

}  // namespace

ggml_context_ptr graph_context(size_t nodes) {
    ggml_context_ptr ctx(
        ggml_init({2 * nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(nodes, false), nullptr, true}));
    if (!ctx) throw BackendError("no memory for a graph of " + std::to_string(nodes) + " nodes");
    return ctx;
}

ggml_backend_sched_ptr graph_scheduler(const std::vector<ggml_backend_ptr>& backends, size_t nodes) {
    std::vector<ggml_backend_t> list;
    for (const ggml_backend_ptr& b : backends) list.push_back(b.get());
    return ggml_backend_sched_ptr(
        ggml_backend_sched_new(list.data(), nullptr, static_cast<int>(list.size()), 2 * nodes, false, true));
}

void assign_nodes(ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
    const auto put = [&](ggml_tensor* t, int device) {
        ggml_backend_sched_set_tensor_backend(scheduler, t, ggml_backend_sched_get_backend(scheduler, device));
    };
    const int host = ggml_backend_sched_get_n_backends(scheduler) - 1;
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        ggml_tensor* node = ggml_graph_node(graph, i);
        if (is_custom(node)) put(node, host);
        for (ggml_tensor* source : node->src) {
            ggml_tensor* whole = source && source->view_src ? source->view_src : source;
            if (whole && (whole->flags & GGML_TENSOR_FLAG_INPUT)) put(whole, graph::device_of_input(whole));
        }
    }
}

size_t input_bytes(ggml_context* ctx) {
    size_t total = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        if ((t->flags & GGML_TENSOR_FLAG_INPUT) && graph::used(t)) total += ggml_nbytes(t);
    }
    return total;
}

}  // namespace ds4::session
