#include "session/checkpoint.h"

namespace ds4::session {
namespace {

constexpr size_t kKept = 16;  // about 18 MB each for V4-Flash

template <typename F>
void each_ring(const state::State& state, F visit) {
    size_t at = 0;
    for (const auto& rings : {state.rings(), state.drafter_rings()}) {
        for (ggml_tensor* ring : rings) {
            visit(ring, at, ggml_nbytes(ring));
            at += ggml_nbytes(ring);
        }
    }
}

}  // namespace

bool reaches(const SnapshotCounters& counters, int64_t position) {
    return counters.position <= position || counters.written_end - position <= state::kMaxRows;
}

std::shared_ptr<const Checkpoint> take_checkpoint(const state::State& state, const SnapshotCounters& counters) {
    auto c = std::make_shared<Checkpoint>();
    c->counters = counters;
    each_ring(state, [&](ggml_tensor* ring, size_t at, size_t size) {
        c->rings.resize(at + size);
        ggml_backend_tensor_get(ring, c->rings.data() + at, 0, size);
    });
    return c;
}

void restore_checkpoint(const state::State& state, const Checkpoint& c) {
    each_ring(state, [&](ggml_tensor* ring, size_t at, size_t size) {
        ggml_backend_tensor_set(ring, c.rings.data() + at, 0, size);
    });
}

void Checkpoints::keep(std::shared_ptr<const Checkpoint> c) {
    drop_after(c->counters.position - 1);
    kept_.push_back(std::move(c));
    if (kept_.size() > kKept) drop_least_missed();
}

void Checkpoints::drop_least_missed() {
    size_t least = 0;
    int64_t smallest = kept_[0]->counters.position;
    for (size_t i = 1; i + 1 < kept_.size(); i++) {
        const int64_t distance = kept_[i]->counters.position - kept_[i - 1]->counters.position;
        if (distance < smallest) smallest = distance, least = i;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(least));
}

std::shared_ptr<const Checkpoint> Checkpoints::at(int64_t position) const {
    for (const auto& each : kept_) {
        if (each->counters.position == position) return each;
    }
    return nullptr;
}

void Checkpoints::share(const Checkpoints& other, int64_t position) {
    kept_ = other.kept_;
    drop_after(position);
}

std::vector<int64_t> Checkpoints::positions() const {
    std::vector<int64_t> found;
    for (const auto& each : kept_) found.push_back(each->counters.position);
    return found;
}

std::shared_ptr<const Checkpoint> Checkpoints::nearest(int64_t position) const {
    for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
        if (reaches((*it)->counters, position)) return *it;
    }
    return nullptr;
}

void Checkpoints::drop_after(int64_t position) {
    while (!kept_.empty() && kept_.back()->counters.position > position) kept_.pop_back();
}

}  // namespace ds4::session
