#include <algorithm>

#include "ds4/model.h"
#include "graph/target.h"
#include "model/device.h"
#include "session/graph_cache.h"

namespace ds4 {
namespace {

/// Gives tensors addresses that are never read, so that a graph can be measured without its weights and state.
ggml_backend_buffer_ptr pretend(ggml_context* ctx) {
    constexpr size_t kAlign = 64;
    char* base = reinterpret_cast<char*>(uintptr_t{1} << 40);
    size_t at = 0;
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        at += GGML_PAD(ggml_nbytes(t), kAlign);
    }
    ggml_backend_buffer_ptr buffer(ggml_backend_dev_buffer_from_host_ptr(model::cpu_device(), base, at, at));
    for (ggml_tensor* t = ggml_get_first_tensor(ctx); t; t = ggml_get_next_tensor(ctx, t)) {
        ggml_backend_tensor_alloc(buffer.get(), t, base);
        base += GGML_PAD(ggml_nbytes(t), kAlign);
    }
    return buffer;
}

ggml_context_ptr describing_context(size_t bytes) { return ggml_context_ptr(ggml_init({bytes, nullptr, true})); }

}  // namespace

MemoryNeed memory_needed(std::shared_ptr<const gguf::File> file, int64_t context, ggml_type kv_type) {
    const model::Hyperparameters hp = model::read_hyperparameters(*file);
    ggml_context_ptr weight_ctx = describing_context(model::weights_context_size(hp));
    ggml_context_ptr state_ctx = describing_context(state::context_size(hp));
    model::Weights weights = model::describe_weights(weight_ctx.get(), *file, hp);
    weights.places = model::on_host(hp.layers, false);
    const auto layers = state::describe_state(state_ctx.get(), hp, context, kv_type);
    const ggml_backend_buffer_ptr weight_buffer = pretend(weight_ctx.get()), state_buffer = pretend(state_ctx.get());
    std::vector<ggml_backend_ptr> backends;
    backends.emplace_back(ggml_backend_dev_init(model::cpu_device(), nullptr));

    const int64_t rows = std::min(graph::chunk_rows(context), context);
    const graph::Shape shape = graph::shape_of(hp, context - rows, rows, graph::Logits::last);
    const auto plan = session::build_plan(backends, shape, graph::node_bound(hp, shape), [&](ggml_context* ctx) {
        return graph::build_target(ctx, hp, weights, layers, {}, shape);
    });
    size_t scratch = 0;
    ggml_backend_sched_reserve_size(plan->scheduler.get(), plan->built.graph, &scratch);
    return {ggml_backend_buffer_get_size(weight_buffer.get()), ggml_backend_buffer_get_size(state_buffer.get()),
            scratch};
}

}  // namespace ds4
