// Acceptance where the target's logits are: only its result crosses to the host.

#include <array>

#include "session/impl.h"

namespace ds4 {

void Session::Impl::require_device_acceptance() const {
    if (device_ && device_->steps().acceptance) return;
    throw RequestError("the device " + model_->device_name() +
                       " has no kernels that accept proposals: read the rows, and accept() on the host");
}

AcceptResult Session::Impl::accept(const DeviceAcceptOptions& options) {
    require_device_acceptance();
    throw_if_stopped();
    if (verified_.empty()) throw RequestError("nothing is verified at this frontier: verify proposals first");
    SamplingPolicy policy;
    policy.temperature = options.temperature;
    const bool greedy = policy.greedy();
    if (!greedy && !options.rng) throw RequestError("accepting at a temperature needs a random generator");
    const bool by_q = !greedy && options.device_draft;
    if (by_q) device_draft_.require_drawn(options.device_draft, verified_.proposals(), options.temperature);
    const kernels::DrawKey key =
        greedy ? kernels::DrawKey{} : kernels::DrawKey{options.rng->seed(), options.rng->skip()};
    device_->accept(verified_.on_device(), verified_.proposals(), by_q, greedy ? 0 : options.temperature, key);
    std::array<int32_t, 2> result;
    traffic_.get(device_->accept_result(), result.data());
    const auto [accepted, token] = result;
    if (token < 0 || token >= vocab()) throw BackendError("the target's logits are no numbers: the model is damaged");
    return {accepted, token};
}

}  // namespace ds4
