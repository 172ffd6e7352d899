// Goes back: within the rings' slack by lowering the frontier, further back from a checkpoint.

#include <algorithm>

#include "session/undo.h"

namespace ds4 {

std::shared_ptr<const session::Checkpoint> Session::Impl::take_checkpoint() const {
    return session::take_checkpoint(state_, frontier_.mark());
}

void Session::Impl::restore(const session::Checkpoint& checkpoint, std::vector<int32_t> tokens) {
    session::restore_checkpoint(state_, checkpoint);
    frontier_.restore(std::move(tokens), checkpoint.mark);
}

void Session::Impl::rewind(int64_t target, const StepProgress& progress) {
    if (target < 0 || target > position()) {
        throw RequestError("cannot rewind to position " + std::to_string(target) + ": the session is at " +
                           std::to_string(position()));
    }
    verified_.drop();
    if (target == position()) return;
    if (frontier_.in_slack(target)) return lower_frontier(target);
    const std::vector<int32_t> all(tokens().begin(), tokens().begin() + target);
    const auto from = checkpoints_.nearest(target);
    or_undo([&] {
        if (from) restore(*from, all);
        lower_frontier(from ? std::min(from->mark.position, target) : 0);
        if (position() < target) extend(std::span(all).subspan(position()), nullptr, progress);
    });
    checkpoints_.drop_after(target);
}

int64_t Session::Impl::resume_point(int64_t target) const {
    if (target == position() || frontier_.in_slack(target)) return target;
    const auto from = checkpoints_.nearest(target);
    return from ? std::min(from->mark.position, target) : 0;
}

void Session::Impl::lower_frontier(int64_t target) {
    frontier_.lower(target);
    logits_.forget();
    checkpoints_.drop_after(target);
}

const std::vector<float>& Session::Impl::logits() {
    if (logits_.on_host()) return logits_.row();
    if (logits_.on_device()) {
        std::vector<float> row(vocab());
        traffic_.get(device_->kept_row(), row.data());
        logits_.read(std::move(row));
        return logits_.row();
    }
    if (tokens().empty()) throw RequestError("nothing has been evaluated yet: prefill a prompt first");
    const int32_t last = tokens().back();
    or_undo([&] {
        rewind(position() - 1, {});
        extend(std::span(&last, 1), nullptr, {});
    });
    return logits_.row();
}

}  // namespace ds4
