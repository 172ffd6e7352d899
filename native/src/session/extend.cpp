// Moving the frontier: prompts in chunks, going back, and what makes an error leave everything as it was.

#include <algorithm>

#include "session/impl.h"

namespace ds4 {
namespace {

constexpr int64_t kCheckpointEvery = 1024;
/// Rows whose logits are held at once: 512 of V4's would take 264 MB.
constexpr int64_t kLogitRows = 128;

}  // namespace

template <typename F>
void Session::Impl::or_undo(F change) {
    const auto before = take_checkpoint();
    const std::vector<int32_t> tokens_before = tokens();
    const session::FrontierLogits logits_before = logits_;
    checkpoints_.keep(before);
    try {
        change();
    } catch (...) {
        restore(*before, tokens_before);
        logits_ = logits_before;
        checkpoints_.drop_after(position());
        throw;
    }
}

std::shared_ptr<const session::Checkpoint> Session::Impl::take_checkpoint() const {
    return session::take_checkpoint(state_, frontier_.mark());
}

void Session::Impl::restore(const session::Checkpoint& checkpoint, std::vector<int32_t> tokens) {
    session::restore_checkpoint(state_, checkpoint);
    frontier_.restore(std::move(tokens), checkpoint.mark);
}

void Session::Impl::keep_checkpoint_if_due() {
    if (position() - checkpoints_.newest_position() >= kCheckpointEvery) checkpoints_.keep(take_checkpoint());
}

void Session::Impl::extend(std::span<const int32_t> more, float* out, const StepProgress& progress,
                           std::span<const int64_t> checkpoints_at) {
    verified_.drop();
    const int64_t start = position();
    const auto run = [&] { evaluate_chunks(more, out, progress, checkpoints_at); };
    if (std::ssize(more) > state::kMaxRows) return or_undo(run);
    try {
        run();
    } catch (...) {  // so few rows past the frontier spoil nothing
        frontier_.lower(start);
        checkpoints_.drop_after(start);
        throw;
    }
}

void Session::Impl::evaluate_chunks(std::span<const int32_t> more, float* out, const StepProgress& progress,
                                    std::span<const int64_t> checkpoints_at) {
    const int64_t total = std::ssize(more);
    std::vector<float> last(vocab());
    for (int64_t done = 0; done < total;) {
        const int64_t widest = graph::chunk_rows(position() + total - done);
        const auto next = std::ranges::upper_bound(checkpoints_at, position());
        const int64_t left = std::min(total - done, next == checkpoints_at.end() ? total : *next - position());
        const int64_t rows = std::min(out ? std::min(widest, kLogitRows) : widest, left);
        const bool final = done + rows == total;
        const auto wanted = out ? graph::Logits::all : final ? graph::Logits::last : graph::Logits::none;
        const auto chunk = more.subspan(done, rows);
        forward(chunk, wanted, out ? out + done * vocab() : last.data());
        frontier_.append(chunk);
        done += rows;
        if (next != checkpoints_at.end() && *next == position()) checkpoints_.keep(take_checkpoint());
        keep_checkpoint_if_due();
        if (progress) progress(done, total);
    }
    if (out) std::copy_n(out + (total - 1) * vocab(), vocab(), last.begin());
    logits_.set(std::move(last));
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
