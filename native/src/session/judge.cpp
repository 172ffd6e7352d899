// Acceptance where the target's logits are: only the verdict crosses to the host.

#include <algorithm>
#include <array>

#include "session/impl.h"

namespace ds4 {

void Session::Impl::require_judge() const {
    if (device && device->steps().acceptance) return;
    throw RequestError("the device " + model->device_name() +
                       " has no kernels that judge: read the rows, and accept()");
}

/// What the verified proposals were drawn in, checked.
bool Session::Impl::drawn(const Judgement& how) const {
    if (!how.held) return false;
    const auto proposals = std::span(verified).subspan(1);
    const bool same = how.held == drafts_made && proposals.size() <= held.size() &&
                      std::ranges::equal(proposals, std::span(held).first(proposals.size()));
    if (same && how.temperature == held_temperature) return true;
    throw RequestError("what was verified was not drawn in draft " + std::to_string(how.held) + " at temperature " +
                       std::to_string(how.temperature) + ": judge the latest draft's own proposals");
}

Verdict Session::Impl::judge(const Judgement& how) {
    require_judge();
    throw_if_stopped();
    if (verified.empty()) throw RequestError("nothing is verified at this frontier: verify proposals first");
    SamplingPolicy policy;
    policy.temperature = how.temperature;
    const bool greedy = policy.greedy();
    if (!greedy && !how.rng) throw RequestError("judging at a temperature needs a random generator");
    const bool by_q = !greedy && drawn(how);
    const kernels::DrawKey key = greedy ? kernels::DrawKey{} : kernels::DrawKey{how.rng->seed(), how.rng->skip()};
    device->judge(verified_rows, std::span(verified).subspan(1), by_q, greedy ? 0 : how.temperature, key);
    std::array<int32_t, 2> verdict;
    traffic.get(device->verdict(), verdict.data());
    const auto [accepted, token] = verdict;
    if (token < 0 || token >= vocab()) throw BackendError("the target's logits are no numbers: the model is damaged");
    return {accepted, token};
}

bool Session::judges() const { return impl_->device && impl_->device->steps().acceptance; }
bool Session::drafts_on_device() const { return impl_->device && impl_->device->steps().chain; }

Verdict Session::judge(const Judgement& how) {
    Busy busy(impl_->busy);
    return impl_->judge(how);
}

}  // namespace ds4
