// Acceptance where the target's logits are: only two integers cross to the host.

#include <array>

#include "session/impl.h"

namespace ds4 {

void Session::Impl::require_acceptance_kernels() const {
    if (device && device->steps().acceptance) return;
    throw RequestError("the device " + model->device_name() +
                       " has no kernels that accept proposals: read the rows, and accept()");
}

bool Session::Impl::drawn_on_device(const DeviceAcceptOptions& how) const {
    if (!how.device_draft) return false;
    if (device_draft.drew(how.device_draft, how.temperature, verified.proposals())) return true;
    throw RequestError("what was verified was not drawn in draft " + std::to_string(how.device_draft) +
                       " at temperature " + std::to_string(how.temperature) +
                       ": accept the latest draft's own proposals");
}

AcceptResult Session::Impl::accept(const DeviceAcceptOptions& how) {
    require_acceptance_kernels();
    throw_if_stopped();
    if (!verified.size()) throw RequestError("nothing is verified at this frontier: verify proposals first");
    SamplingPolicy policy;
    policy.temperature = how.temperature;
    const bool greedy = policy.greedy();
    if (!greedy && !how.rng) throw RequestError("accepting at a temperature needs a random generator");
    const bool by_q = !greedy && drawn_on_device(how);
    const kernels::DrawKey key = greedy ? kernels::DrawKey{} : kernels::DrawKey{how.rng->seed(), how.rng->skip()};
    device->accept(verified.logits(), verified.proposals(), by_q, greedy ? 0 : how.temperature, key);
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
