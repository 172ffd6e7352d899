#include "session/checkpoint.h"

namespace ds4::session {
namespace {

constexpr size_t kKept = 4;  // about 18 MB each for V4-Flash

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

std::shared_ptr<const Checkpoint> take_checkpoint(const state::State& state, const Mark& mark) {
    auto c = std::make_shared<Checkpoint>();
    c->mark = mark;
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
    drop_after(c->mark.position - 1);
    kept_.push_back(std::move(c));
    if (kept_.size() > kKept) kept_.pop_front();
}

std::shared_ptr<const Checkpoint> Checkpoints::nearest(int64_t position) const {
    for (auto it = kept_.rbegin(); it != kept_.rend(); ++it) {
        if ((*it)->mark.position <= position) return *it;
    }
    return nullptr;
}

void Checkpoints::drop_after(int64_t position) {
    while (!kept_.empty() && kept_.back()->mark.position > position) kept_.pop_back();
}

}  // namespace ds4::session
