#pragma once
// What makes an error leave everything as it was.

#include "session/impl.h"

namespace ds4 {

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

}  // namespace ds4
