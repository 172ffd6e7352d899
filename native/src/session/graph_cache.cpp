#include "session/graph_cache.h"

#include "ds4/errors.h"

namespace ds4::session {

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

}  // namespace ds4::session
