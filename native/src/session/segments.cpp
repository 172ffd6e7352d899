#include "session/segments.h"

#include <algorithm>

namespace ds4::session {

const ops::device::Slot* Segments::slot_of(const ggml_tensor* node) const {
    if (!own_.slots) return nullptr;
    const auto at = std::ranges::find(*own_.slots, node, &ops::device::Slot::node);
    return at == own_.slots->end() ? nullptr : &*at;
}

void Segments::run(const ops::device::Slot& slot) {
    if (error_) return;
    try {
        slot.run(*own_.launcher, slot.node);
        own_.launcher->synchronize();
    } catch (...) {
        error_ = std::current_exception();
    }
}

bool Segments::observe(ggml_tensor* node, bool ask, void* self) {
    auto& segments = *static_cast<Segments*>(self);
    const ops::device::Slot* slot = segments.slot_of(node);
    if (slot && !ask) segments.run(*slot);
    const bool watched = segments.watch_ && segments.watch_->observe(node, ask);
    return slot || watched;
}

void Segments::rethrow() const {
    if (error_) std::rethrow_exception(error_);
}

}  // namespace ds4::session
