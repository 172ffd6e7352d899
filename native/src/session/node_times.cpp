#include "session/node_times.h"

#include <algorithm>
#include <set>

#include "session/impl.h"

namespace ds4 {
namespace session {
namespace {

/// Nodes that only say where others lie.
bool is_view(const ggml_tensor* node) {
    constexpr ggml_op views[] = {GGML_OP_NONE, GGML_OP_RESHAPE, GGML_OP_VIEW, GGML_OP_PERMUTE, GGML_OP_TRANSPOSE};
    return std::ranges::find(views, node->op) != std::end(views);
}

void add_values(const ggml_tensor* t, std::set<int32_t>& values) {
    std::vector<int32_t> row(t->ne[0]);
    for (int64_t i = 0; i < t->ne[1]; i++) {
        ggml_backend_tensor_get(t, row.data(), i * t->nb[1], row.size() * sizeof(int32_t));
        values.insert(row.begin(), row.end());
    }
}

/// Returns how many matrices of a stack (experts) a node reads: those whose ids are in its I32 sources.
int64_t matrices_read(const ggml_tensor* node) {
    const auto stacked = [](const ggml_tensor* t) { return t && t->op == GGML_OP_NONE && t->ne[2] > 1; };
    if (std::ranges::none_of(node->src, stacked)) return 0;
    std::set<int32_t> values;
    for (const ggml_tensor* source : node->src) {
        if (source && source->type == GGML_TYPE_I32) add_values(source, values);
    }
    return std::ssize(values);
}

}  // namespace

bool NodeWatch::observe(ggml_tensor* node, bool ask) {
    ask ? begin(node) : end(node);
    return !is_view(node);
}

void NodeWatch::begin(const ggml_tensor* node) {
    NodeTime made{ggml_op_name(node->op), {}, {}, 0, 0};
    for (const ggml_tensor* source : node->src) {
        if (!source) continue;
        const auto at = index_.find(source);
        if (at != index_.end()) made.sources.push_back(at->second);
        if (at == index_.end() && source->name[0]) made.leaves.emplace_back(source->name);
    }
    index_[node] = static_cast<int32_t>(found_.size());
    found_.push_back(std::move(made));
    begun_ = std::chrono::steady_clock::now();
}

void NodeWatch::end(const ggml_tensor* node) {
    found_.back().seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    found_.back().experts = matrices_read(node);
}

}  // namespace session

std::vector<NodeTime> Session::Impl::node_times(std::span<const int32_t> rows) {
    check_tokens(rows);
    if (rows.size() > state::kMaxRows) {
        throw RequestError("cannot time " + std::to_string(rows.size()) + " rows at once, wanted 1 to " +
                           std::to_string(state::kMaxRows));
    }
    std::vector<float> logits(rows.size() * vocab());
    session::NodeWatch watch;
    forward(rows, graph::Logits::all, logits.data(), &watch);
    return watch.found();
}

}  // namespace ds4
