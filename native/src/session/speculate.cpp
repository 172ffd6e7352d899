// The steps of a speculative cycle: draft, verify, commit; device_accept.cpp has acceptance on a device.

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
    const size_t candidates = d.q.empty() ? 0 : ggml_nelements(d.q[0]);
    block.q.resize(candidates * d.q.size());
    for (size_t j = 0; j < d.q.size(); j++) traffic.get(d.q[j], block.q.data() + j * candidates);
    if (candidates) block.candidates = read_all<int32_t>(d.candidates, traffic);
    block.confidence = read_all<float>(d.confidence, traffic);
    return block;
}

void check(const Drafter* drafter, const DraftOptions& o) {
    if (!drafter) throw RequestError("this session has no drafter: open the engine with one");
    if (o.draft_vocab < 0) {
        throw RequestError("draft_vocab is " + std::to_string(o.draft_vocab) +
                           ", wanted a number of candidates, or 0 for the whole vocabulary");
    }
    if (o.sampler && !o.rng) throw RequestError("a sampled draft needs a random generator");
}

/// Whether the device's own kernels can draw such a draft.
bool chains(const session::DeviceKernels* device, const DraftOptions& o) {
    if (!device || !device->steps().chain || o.draft_vocab) return false;
    return !o.sampler || (o.sampler->policy().temperature_only() && !o.sampler->policy().greedy());
}

}  // namespace

DraftBlock Session::Impl::draft(int32_t anchor, const DraftOptions& options) {
    check(drafter_.get(), options);
    check_tokens(std::span(&anchor, 1));
    throw_if_stopped();
    const drafter::Hyperparameters& hp = drafter_->hyperparameters();
    const int64_t draft_vocab = options.draft_vocab < vocab() ? options.draft_vocab : 0;
    const bool on_device = chains(device_.get(), options);
    latest_draft_ = nullptr;
    device_draft_.begin();
    auto& plan = drafts_.get(
        {frontier_.rows_to_project(hp.stages.window), draft_vocab, options.sampler && !on_device, !on_device});
    graph::fill_draft_inputs(plan.built.in, hp, plan.shape, position(), frontier_.features_from(), anchor);
    proposal_draw_ = {};  // without an error that came together with a cancel
    if (options.sampler && !on_device) {
        proposal_draw_ = {options.sampler, tokens(), {}, 0, nullptr};
        proposal_draw_.history.push_back(anchor);
        for (int64_t j = 0; j < hp.block; j++) proposal_draw_.uniforms.push_back(options.rng->uniform());
    }
    traffic_.to_device += plan.input_bytes;
    compute(plan.scheduler.get(), plan.built.graph, "a draft",
            session::Segments({&plan.built.slots, device_ ? &device_->launcher() : nullptr}, nullptr));
    if (proposal_draw_.error) std::rethrow_exception(std::exchange(proposal_draw_.error, nullptr));
    frontier_.project();
    latest_draft_ = &plan.built;
    return on_device ? chain_on_device(plan.built, anchor, options) : read_block(plan.built, traffic_);
}

DraftBlock Session::Impl::chain_on_device(const graph::Draft& d, int32_t anchor, const DraftOptions& options) {
    const float temperature = options.sampler ? options.sampler->policy().temperature : 0.0f;
    const kernels::DrawKey key =
        options.sampler ? kernels::DrawKey{options.rng->seed(), options.rng->skip()} : kernels::DrawKey{};
    session::Chained chained = device_->chain(d, anchor, temperature, key);
    if (!std::ranges::all_of(chained.log_sum, [](float x) { return std::isfinite(x); })) {
        throw BackendError("the drafter's logits are no numbers: its file is damaged");
    }
    DraftBlock block;
    block.tokens = std::move(chained.tokens);
    block.confidence = std::move(chained.confidences);
    if (!options.sampler) return block;
    block.device_draft = device_draft_.keep(block.tokens, temperature, std::move(chained.log_sum));
    if (options.read_q) block.q = device_q(block.device_draft);
    return block;
}

std::vector<float> Session::Impl::device_q(uint64_t draft) {
    device_draft_.require(draft);
    return device_draft_.q(read_all<float>(device_->logits(), traffic_));
}

std::span<const float> Session::Impl::verify(std::span<const int32_t> rows, bool read) {
    check_tokens(rows);
    if (rows.size() > state::kMaxRows) {
        throw RequestError("cannot verify " + std::to_string(rows.size()) + " rows at once, wanted 1 to " +
                           std::to_string(state::kMaxRows));
    }
    float* out = read ? verified_.host_memory() : nullptr;
    const ggml_tensor* on_device = forward(rows, graph::Logits::all, out);
    verified_.set(rows, on_device, read);
    return read ? verified_.logits() : std::span<const float>();
}

/// Accepted rows join the state. The others are rolled back by that alone: they lie past the frontier in the rings,
/// where the next forward overwrites them before anything reads them (frontier.h, state/state.h).
void Session::Impl::commit(int64_t rows) {
    if (rows < 1 || rows > verified_.size()) {
        throw RequestError("cannot commit " + std::to_string(rows) + " rows: " + std::to_string(verified_.size()) +
                           " were verified at this frontier");
    }
    frontier_.append(verified_.tokens().first(rows));
    if (verified_.on_host()) {
        const auto last = verified_.row(rows - 1);
        logits_.set({last.begin(), last.end()});
    } else {
        device_->keep_row(verified_.on_device(), rows - 1);
        logits_.keep_on_device();
    }
    verified_.drop();
    keep_checkpoint_if_due();
}

DraftTrace Session::Impl::draft_trace() {
    if (!latest_draft_) throw RequestError("nothing has been drafted yet");
    const auto rows = static_cast<size_t>(latest_draft_->base->ne[1]);
    return {rows, read_all<float>(latest_draft_->hidden, traffic_), read_all<float>(latest_draft_->base, traffic_)};
}

}  // namespace ds4
