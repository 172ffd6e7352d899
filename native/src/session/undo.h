#pragma once
// What makes an error leave everything as it was.

#include "session/impl.h"

namespace ds4 {

template <typename F>
void Session::Impl::or_undo(F change) {
    const auto before = take_checkpoint();
    const std::vector<int32_t> tokens_before = tokens();
    const session::FrontierLogits logits_before = logits_;
    const session::Checkpoints checkpoints_before = checkpoints_;  // shares the copies of the rings
    checkpoints_.keep(before);
    try {
        change();
    } catch (...) {
        restore(*before, tokens_before);
        logits_ = logits_before;
        checkpoints_ = checkpoints_before;
        throw;
    }
}

}  // namespace ds4
