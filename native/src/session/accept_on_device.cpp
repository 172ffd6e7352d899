// Acceptance where the target's logits are: only two integers cross to the host.

#include <algorithm>
#include <array>

#include "session/impl.h"

namespace ds4 {

void Session::Impl::require_acceptance_kernels() const {
    if (device && device->steps().acceptance) return;
    throw RequestError("the device " + model->device_name() +
                       " has no kernels that accept proposals: read the rows, and accept()");
}

/// What the verified proposals were drawn in, checked.
bool Session::Impl::drawn(const DeviceAcceptOptions& how) const {
    if (!how.device_draft) return false;
    const auto proposals = std::span(verified).subspan(1);
    const bool same = how.device_draft == drafts_made && proposals.size() <= device_draft_tokens.size() &&
                      std::ranges::equal(proposals, std::span(device_draft_tokens).first(proposals.size()));
    if (same && how.temperature == device_draft_temperature) return true;
    throw RequestError("what was verified was not drawn in draft " + std::to_string(how.device_draft) +
                       " at temperature " + std::to_string(how.temperature) +
                       ": accept the latest draft's own proposals");
}

AcceptResult Session::Impl::accept(const DeviceAcceptOptions& how) {
    require_acceptance_kernels();
    throw_if_stopped();
    if (verified.empty()) throw RequestError("nothing is verified at this frontier: verify proposals first");
    SamplingPolicy policy;
    policy.temperature = how.temperature;
    const bool greedy = policy.greedy();
    if (!greedy && !how.rng) throw RequestError("accepting at a temperature needs a random generator");
    const bool by_q = !greedy && drawn(how);
    const kernels::DrawKey key = greedy ? kernels::DrawKey{} : kernels::DrawKey{how.rng->seed(), how.rng->skip()};
    device->accept(verified_rows, std::span(verified).subspan(1), by_q, greedy ? 0 : how.temperature, key);
    std::array<int32_t, 2> found;
    traffic.get(device->accept_result(), found.data());
    const auto [accepted, token] = found;
    if (token < 0 || token >= vocab()) throw BackendError("the target's logits are no numbers: the model is damaged");
    return {accepted, token};
}

bool Session::accepts_on_device() const { return impl_->device && impl_->device->steps().acceptance; }
bool Session::drafts_on_device() const { return impl_->device && impl_->device->steps().chain; }

AcceptResult Session::accept(const DeviceAcceptOptions& how) {
    const DeviceCall call(*impl_);
    return impl_->accept(how);
}

}  // namespace ds4
