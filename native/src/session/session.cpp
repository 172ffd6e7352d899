#include "ds4/session.h"

#include <algorithm>

#include "session/impl.h"

namespace ds4 {

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options,
                 std::shared_ptr<const Drafter> drafter) {
    const backend::ConnectionLock lock(model->connections().endpoints());
    impl_ = std::make_unique<Impl>(std::move(model), options, std::move(drafter));
}
Session::~Session() = default;

const Model& Session::model() const { return impl_->model(); }
const Drafter* Session::drafter() const { return impl_->drafter(); }
int64_t Session::context() const { return impl_->options().context; }
ggml_type Session::kv_type() const { return impl_->options().kv_type; }
int64_t Session::position() const { return impl_->position(); }
std::vector<int32_t> Session::tokens() const {
    Busy busy(*impl_);
    return impl_->tokens();
}

void Session::prefill(std::span<const int32_t> tokens, const StepProgress& progress,
                      std::span<const int64_t> checkpoints) {
    Call call(*impl_);
    impl_->check_tokens(tokens);
    if (!std::ranges::is_sorted(checkpoints)) throw RequestError("checkpoints: the positions are not ascending");
    impl_->extend(tokens, nullptr, progress, checkpoints);
}

void Session::evaluate(std::span<const int32_t> tokens, std::span<float> out, const StepProgress& progress) {
    Call call(*impl_);
    impl_->check_tokens(tokens);
    if (std::ssize(out) != std::ssize(tokens) * impl_->vocab()) {
        throw RequestError("the output of evaluate holds " + std::to_string(out.size()) + " numbers, wanted " +
                           std::to_string(tokens.size() * impl_->vocab()));
    }
    impl_->extend(tokens, out.data(), progress);
}

std::span<const float> Session::logits() {
    Call call(*impl_);
    return impl_->logits();
}

int32_t Session::sample(Sampler& sampler, Rng& rng) {
    Call call(*impl_);
    return sampler.sample(impl_->logits(), impl_->tokens(), rng);
}

DraftBlock Session::draft(int32_t anchor, const DraftOptions& options) {
    Call call(*impl_);
    return impl_->draft(anchor, options);
}

std::vector<float> Session::device_q(uint64_t device_draft) {
    Call call(*impl_);
    return impl_->device_q(device_draft);
}

std::span<const float> Session::verify(std::span<const int32_t> tokens) {
    Call call(*impl_);
    return impl_->verify(tokens, true);
}

void Session::verify_on_device(std::span<const int32_t> tokens) {
    Call call(*impl_);
    impl_->require_device_acceptance();
    impl_->verify(tokens, false);
}

bool Session::accepts_on_device() const {
    return impl_->device_kernels() && impl_->device_kernels()->steps().acceptance;
}

bool Session::drafts_on_device() const { return impl_->device_kernels() && impl_->device_kernels()->steps().chain; }

AcceptResult Session::accept(const DeviceAcceptOptions& options) {
    Call call(*impl_);
    return impl_->accept(options);
}

std::map<std::string, std::string> Session::ops() const {
    const kernels::KernelChoice choice = impl_->kernel_choice();
    const auto by = [&](kernels::Op op, const char* cpu) { return choice.cpu(op) ? cpu : choice.describe(op); };
    return {{"draft attention", by(kernels::Op::draft_attention, "own (CPU)")},
            {"Markov head", by(kernels::Op::markov_head, "own (CPU) for a draft vocabulary, else ggml")},
            {"acceptance", by(kernels::Op::acceptance, "host")}};
}

std::string Session::kernel_choice() const { return impl_->kernel_choice().describe(); }

void Session::commit(int64_t rows) {
    Call call(*impl_);
    impl_->commit(rows);
}

void Session::rewind(int64_t position, const StepProgress& progress) {
    Call call(*impl_);
    impl_->rewind(position, progress);
}

int64_t Session::resume_point(int64_t position) const {
    Busy busy(*impl_);
    return impl_->resume_point(position);
}

std::vector<int64_t> Session::checkpoints() const {
    Busy busy(*impl_);
    return impl_->checkpoints();
}

void Session::copy_from(const Session& source, int64_t position, const StepProgress& progress) {
    Call call(*impl_);
    Busy busy(*source.impl_);  // of the same model, so the same connections
    impl_->copy_from(*source.impl_, position, progress);
}

void Session::save(const std::string& path, std::span<const int64_t> checkpoints) {
    Call call(*impl_);
    impl_->save(path, checkpoints);
}

void Session::cancel() { impl_->set_cancelled(true); }
void Session::clear_cancel() { impl_->set_cancelled(false); }
void Session::set_interrupt(std::function<bool()> interrupt) {
    Busy busy(*impl_);
    impl_->set_interrupt(std::move(interrupt));
}

TrafficCount SessionDiagnostics::traffic() const { return session_.impl_->traffic(); }

std::vector<GraphStatistics> SessionDiagnostics::graphs() const {
    Call call(*session_.impl_);
    return session_.impl_->graphs();
}

std::vector<NodeTime> SessionDiagnostics::node_times(std::span<const int32_t> tokens) {
    Call call(*session_.impl_);
    return session_.impl_->node_times(tokens);
}

DraftTrace SessionDiagnostics::draft_trace() const {
    Call call(*session_.impl_);
    return session_.impl_->draft_trace();
}

}  // namespace ds4
