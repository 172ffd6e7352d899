#include <algorithm>

#include "ds4/model.h"
#include "graph/target.h"
#include "model/device.h"
#include "session/graph_cache.h"
#include "session/pretend.h"

namespace ds4 {
namespace {

ggml_context_ptr describing_context(size_t bytes) { return ggml_context_ptr(ggml_init({bytes, nullptr, true})); }

}  // namespace

MemoryNeed memory_needed(std::shared_ptr<const gguf::File> file, int64_t context, ggml_type kv_type) {
    const model::Hyperparameters hp = model::read_hyperparameters(*file);
    ggml_context_ptr weight_ctx = describing_context(model::weights_context_size(hp));
    ggml_context_ptr state_ctx = describing_context(state::context_size(hp));
    model::Weights weights = model::describe_weights(weight_ctx.get(), *file, hp);
    weights.places = model::on_host(hp.layers, false);
    const auto layers = state::describe_state(state_ctx.get(), hp, context, kv_type);
    const ggml_backend_buffer_ptr weight_buffer = session::pretend(weight_ctx.get()),
                                  state_buffer = session::pretend(state_ctx.get());
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
