// The steps of a speculative cycle: draft, verify, commit.

#include <algorithm>
#include <cmath>

#include "session/impl.h"

namespace ds4 {
namespace {

template <typename T>
std::vector<T> read_all(const ggml_tensor* t, session::Traffic& traffic) {
    std::vector<T> data(t ? ggml_nelements(t) : 0);
    if (t) traffic.get(t, data.data());
    return data;
}

DraftBlock read_block(const graph::Draft& d, session::Traffic& traffic) {
    DraftBlock block;
    block.tokens.resize(d.tokens.size());
    for (size_t j = 0; j < d.tokens.size(); j++) traffic.get(d.tokens[j], &block.tokens[j]);
    const size_t width = d.q.empty() ? 0 : ggml_nelements(d.q[0]);
    block.q.resize(width * d.q.size());
    for (size_t j = 0; j < d.q.size(); j++) traffic.get(d.q[j], block.q.data() + j * width);
    if (width) block.ids = read_all<int32_t>(d.candidates, traffic);
    block.confidence = read_all<float>(d.confidence, traffic);
    return block;
}

void check(const Drafter* drafter, const DraftOptions& o) {
    if (!drafter) throw RequestError("this session has no drafter: open the engine with one");
    if (o.shortlist < 0) {
        throw RequestError("the shortlist is " + std::to_string(o.shortlist) +
                           ", wanted a number of candidates, or 0 for the whole vocabulary");
    }
    if (o.sampler && !o.rng) throw RequestError("a sampled draft needs a random generator");
}

/// Whether the device's own kernels can draw it.
bool chains(const session::DeviceKernels* device, const DraftOptions& o) {
    if (!device || !device->steps().chain || o.shortlist) return false;
    return !o.sampler || (o.sampler->policy().temperature_only() && !o.sampler->policy().greedy());
}

}  // namespace

DraftBlock Session::Impl::draft(int32_t anchor, const DraftOptions& options) {
    check(drafter.get(), options);
    check_tokens(std::span(&anchor, 1));
    throw_if_stopped();
    const drafter::Hyperparameters& hp = drafter->hyperparameters();
    const int64_t oldest = std::max(position() - hp.stages.window, features_from);
    const int64_t context = position() - std::clamp(projected, std::min(oldest, position()), position());
    const int64_t shortlist = options.shortlist < vocab() ? options.shortlist : 0;
    const bool on_device = chains(device.get(), options);
    latest_draft = nullptr;
    held.clear();
    drafts_made++;
    auto& plan = drafts.get({context, shortlist, options.sampler && !on_device, !on_device});
    graph::fill_draft_inputs(plan.built.in, hp, plan.shape, position(), features_from, anchor);
    proposal_draw = {};  // without an error that came together with a cancel
    if (options.sampler && !on_device) {
        proposal_draw = {options.sampler, tokens, {}, 0, nullptr};
        proposal_draw.history.push_back(anchor);
        for (int64_t j = 0; j < hp.block; j++) proposal_draw.uniforms.push_back(options.rng->uniform());
    }
    traffic.to_device += plan.input_bytes;
    compute(plan.scheduler.get(), plan.built.graph, "a draft",
            session::Segments({&plan.built.slots, device ? &device->launcher() : nullptr}, nullptr));
    if (proposal_draw.error) std::rethrow_exception(std::exchange(proposal_draw.error, nullptr));
    projected = position();
    latest_draft = &plan.built;
    return on_device ? chain_on_device(plan.built, anchor, options) : read_block(plan.built, traffic);
}

DraftBlock Session::Impl::chain_on_device(const graph::Draft& d, int32_t anchor, const DraftOptions& options) {
    const float temperature = options.sampler ? options.sampler->policy().temperature : 0.0f;
    const kernels::DrawKey key =
        options.sampler ? kernels::DrawKey{options.rng->seed(), options.rng->skip()} : kernels::DrawKey{};
    session::Chained chained = device->chain(d, anchor, temperature, key);
    log_sum = std::move(chained.log_sum);
    if (!std::ranges::all_of(log_sum, [](float x) { return std::isfinite(x); })) {
        throw BackendError("the drafter's logits are no numbers: its file is damaged");
    }
    DraftBlock block;
    block.tokens = std::move(chained.tokens);
    block.confidence = std::move(chained.confidences);
    if (!options.sampler) return block;
    held = block.tokens;
    held_temperature = temperature;
    block.held = drafts_made;
    if (options.read_q) block.q = held_q(block.held);
    return block;
}

std::vector<float> Session::Impl::held_q(uint64_t draft) {
    if (held.empty() || draft != drafts_made) {
        throw RequestError("q of draft " + std::to_string(draft) +
                           " is not on the device any more: ask for it before the next draft");
    }
    std::vector<float> q = read_all<float>(device->logits(), traffic);
    for (size_t i = 0; i < q.size(); i++) {
        q[i] = std::exp(q[i] / held_temperature - log_sum[i / static_cast<size_t>(vocab())]);
    }
    return q;
}

void Session::Impl::verify(std::span<const int32_t> rows, bool read) {
    check_tokens(rows);
    if (rows.size() > state::kMaxRows) {
        throw RequestError("cannot verify " + std::to_string(rows.size()) + " rows at once, wanted 1 to " +
                           std::to_string(state::kMaxRows));
    }
    verified.clear();
    if (read) verified_logits.resize(state::kMaxRows * vocab());
    verified_rows = forward(rows, graph::Logits::all, read ? verified_logits.data() : nullptr);
    verified_read = read;
    verified.assign(rows.begin(), rows.end());
}

void Session::Impl::commit(int64_t rows) {
    if (rows < 1 || rows > static_cast<int64_t>(verified.size())) {
        throw RequestError("cannot commit " + std::to_string(rows) + " rows: " + std::to_string(verified.size()) +
                           " were verified at this frontier");
    }
    tokens.insert(tokens.end(), verified.begin(), verified.begin() + rows);
    if (verified_read) {
        const auto last = verified_logits.begin() + (rows - 1) * vocab();
        logits.assign(last, last + vocab());
    } else {
        device->keep_row(verified_rows, rows - 1);
        logits.clear();
    }
    row_kept = !verified_read;
    verified.clear();
    keep_checkpoint_if_due();
}

const Drafter* Session::drafter() const { return impl_->drafter.get(); }

DraftBlock Session::draft(int32_t anchor, const DraftOptions& options) {
    Busy busy(impl_->busy);
    return impl_->draft(anchor, options);
}

DraftTrace Session::draft_trace() const {
    Busy busy(impl_->busy);
    if (!impl_->latest_draft) throw RequestError("nothing has been drafted yet");
    session::Traffic& traffic = impl_->traffic;
    return {read_all<float>(impl_->latest_draft->hidden, traffic), read_all<float>(impl_->latest_draft->base, traffic)};
}

std::span<const float> Session::verify(std::span<const int32_t> tokens) {
    Busy busy(impl_->busy);
    impl_->verify(tokens, true);
    return std::span(impl_->verified_logits).first(tokens.size() * impl_->vocab());
}

void Session::verify_unread(std::span<const int32_t> tokens) {
    Busy busy(impl_->busy);
    impl_->require_judge();
    impl_->verify(tokens, false);
}

std::vector<float> Session::held_q(uint64_t draft) {
    Busy busy(impl_->busy);
    return impl_->held_q(draft);
}

std::map<std::string, std::string> Session::ops() const {
    const kernels::KernelChoice choice = impl_->kernel_choice();
    const auto by = [&](kernels::Op op, const char* cpu) { return choice.cpu(op) ? cpu : choice.describe(op); };
    return {{"draft attention", by(kernels::Op::draft_attention, "own (CPU)")},
            {"Markov head", by(kernels::Op::markov_head, "own (CPU) for a shortlist, else ggml")},
            {"acceptance", by(kernels::Op::acceptance, "host")}};
}

std::string Session::kernel_choice() const { return impl_->kernel_choice().describe(); }

kernels::KernelChoice Session::Impl::kernel_choice() const {
    const weights::DeviceMap& device_map = model->device_map();
    kernels::KernelChoice choice = device_map.kernel_choice(device_map.head);
    if (device) device->add_to(choice);
    return choice;
}

TrafficCount Session::traffic() const { return {impl_->traffic.to_device, impl_->traffic.to_host}; }

void Session::commit(int64_t rows) {
    Busy busy(impl_->busy);
    impl_->commit(rows);
}

}  // namespace ds4
