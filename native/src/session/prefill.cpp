// Extends the frontier by a prompt, in chunks.

#include <algorithm>

#include "session/undo.h"

namespace ds4 {
namespace {

constexpr int64_t kCheckpointEvery = 1024;
/// Rows whose logits are held at once: 512 of V4's would take 264 MB.
constexpr int64_t kLogitRows = 128;

}  // namespace

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

}  // namespace ds4
