#include "ds4/session.h"

#include <algorithm>

#include "session/impl.h"

namespace ds4 {

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options,
                 std::shared_ptr<const Drafter> drafter) {
    const auto held = backend::ConnectionLocks(model->device_map().devices).hold();
    impl_ = std::make_unique<Impl>(std::move(model), options, std::move(drafter));
}

Session::~Session() {
    const auto held = impl_->connections.hold();
    impl_.reset();
}

const Model& Session::model() const { return *impl_->model; }
int64_t Session::context() const { return impl_->options.context; }
ggml_type Session::kv_type() const { return impl_->options.kv_type; }
int64_t Session::position() const { return impl_->position(); }
std::vector<int32_t> Session::tokens() const {
    Busy busy(impl_->busy);
    return impl_->tokens;
}

void Session::prefill(std::span<const int32_t> tokens, const StepProgress& progress,
                      std::span<const int64_t> checkpoints) {
    const DeviceCall call(*impl_);
    impl_->check_tokens(tokens);
    if (!std::ranges::is_sorted(checkpoints)) throw RequestError("checkpoints: the positions are not ascending");
    impl_->extend(tokens, nullptr, progress, checkpoints);
}

void Session::evaluate(std::span<const int32_t> tokens, std::span<float> out, const StepProgress& progress) {
    const DeviceCall call(*impl_);
    impl_->check_tokens(tokens);
    if (static_cast<int64_t>(out.size()) != static_cast<int64_t>(tokens.size()) * impl_->vocab()) {
        throw RequestError("the output of evaluate holds " + std::to_string(out.size()) + " numbers, wanted " +
                           std::to_string(tokens.size() * impl_->vocab()));
    }
    impl_->extend(tokens, out.data(), progress);
}

std::span<const float> Session::logits() {
    const DeviceCall call(*impl_);
    impl_->ensure_logits();
    return impl_->logits.host();
}

int32_t Session::sample(Sampler& sampler, Rng& rng) {
    const DeviceCall call(*impl_);
    impl_->ensure_logits();
    return sampler.sample(impl_->logits.host(), impl_->tokens, rng);
}

void Session::rewind(int64_t position, const StepProgress& progress) {
    const DeviceCall call(*impl_);
    impl_->rewind(position, progress);
}

int64_t Session::resume_point(int64_t position) const {
    Busy busy(impl_->busy);
    return impl_->resume_point(position);
}

std::vector<int64_t> Session::checkpoints() const {
    Busy busy(impl_->busy);
    return impl_->checkpoints.positions();
}

void Session::copy_from(const Session& source, int64_t position, const StepProgress& progress) {
    const DeviceCall call(*impl_);
    Busy source_busy(source.impl_->busy);
    impl_->copy_from(*source.impl_, position, progress);
}

void Session::cancel() { impl_->cancelled = true; }
void Session::clear_cancel() { impl_->cancelled = false; }
void Session::set_interrupt(std::function<bool()> interrupt) {
    Busy busy(impl_->busy);
    impl_->interrupt = std::move(interrupt);
}

}  // namespace ds4
