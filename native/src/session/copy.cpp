// A session that becomes what another one was: what conversations share is evaluated once.

#include <algorithm>

#include "session/impl.h"

namespace ds4 {
namespace {

void copy_rows(ggml_tensor* from, ggml_tensor* to, size_t bytes) {
    if (!bytes) return;
    std::vector<char> rows(bytes);
    ggml_backend_tensor_get(from, rows.data(), 0, bytes);
    ggml_backend_tensor_set(to, rows.data(), 0, bytes);
}

/// The compressed rows of blocks that are complete before `position`.
void copy_compressed(const state::State& from, const state::State& to, int64_t position) {
    const auto source = from.compressed(), target = to.compressed();
    for (size_t i = 0; i < source.size(); i++) {
        const auto [rows, ratio] = source[i];
        copy_rows(rows, target[i].first, rows->nb[1] * static_cast<size_t>(position / ratio));
    }
}

}  // namespace

void Session::Impl::copy_from(const Impl& source, int64_t target, const StepProgress& progress) {
    if (model_ != source.model_ || drafter_ != source.drafter_ || options_.kv_type != source.options_.kv_type) {
        throw RequestError("cannot copy from a session of another model, drafter or KV type");
    }
    if (target < 0 || target > source.position() || target > options_.context) {
        throw RequestError("cannot copy " + std::to_string(target) + " positions: the session to copy from has " +
                           std::to_string(source.position()) + ", and the context here is " +
                           std::to_string(options_.context));
    }
    rewind(0, {});
    const bool live = target && source.frontier_.in_slack(target);
    const auto from = live ? source.take_checkpoint() : source.checkpoints_.nearest(target);
    const int64_t start = from ? std::min(from->mark.position, target) : 0;
    if (start) {
        copy_compressed(source.state_, state_, start);
        restore(*from, {source.tokens().begin(), source.tokens().begin() + from->mark.position});
        checkpoints_.share(source.checkpoints_, start);
        lower_frontier(start);
    }
    if (start == target) return;
    try {
        extend(std::span(source.tokens()).subspan(start, target - start), nullptr, progress);
    } catch (...) {
        rewind(0, {});
        throw;
    }
}

}  // namespace ds4
