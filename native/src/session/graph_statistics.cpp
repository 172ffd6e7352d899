// What is known of a session's graphs.

#include <algorithm>

#include "backend/device.h"
#include "session/impl.h"

namespace ds4 {
namespace {

bool computes(const ggml_tensor* node) {
    constexpr ggml_op views[] = {GGML_OP_NONE, GGML_OP_RESHAPE, GGML_OP_VIEW, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE};
    return std::ranges::find(views, node->op) == std::end(views);
}

GraphStatistics statistics_of(ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
    GraphStatistics statistics{};
    statistics.splits = ggml_backend_sched_get_n_splits(scheduler);
    for (int i = 0; i < ggml_graph_n_nodes(graph); i++) {
        ggml_tensor* node = ggml_graph_node(graph, i);
        statistics.addresses = statistics.addresses * 31 + reinterpret_cast<uintptr_t>(node->data);
        if (!computes(node)) continue;
        statistics.nodes++;
        ggml_backend_dev_t device = ggml_backend_get_device(ggml_backend_sched_get_tensor_backend(scheduler, node));
        statistics.devices[backend::name_of(device)]++;
        if (device == backend::cpu_device()) statistics.cpu_ops[ggml_op_name(node->op)]++;
    }
    if (statistics.devices.size() == 1) statistics.cpu_ops.clear();
    for (int i = 0; i < ggml_backend_sched_get_n_backends(scheduler); i++) {
        statistics.bytes += ggml_backend_sched_get_buffer_size(scheduler, ggml_backend_sched_get_backend(scheduler, i));
    }
    return statistics;
}

}  // namespace

std::vector<GraphStatistics> SessionDiagnostics::graphs() const {
    Busy busy(session_->busy);
    std::vector<GraphStatistics> all;
    const auto add = [&](const char* kind, int64_t rows, const auto& plan) {
        all.push_back(statistics_of(plan.scheduler.get(), plan.built.graph));
        all.back().kind = kind;
        all.back().rows = rows;
    };
    for (const auto& plan : session_->forwards.kept()) add("forward", plan->shape.rows, *plan);
    for (const auto& plan : session_->drafts.kept()) add("draft", session_->drafter->hyperparameters().rows(), *plan);
    return all;
}

}  // namespace ds4
