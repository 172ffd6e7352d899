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
    if (o.draft_vocab < 0) {
        throw RequestError("draft_vocab is " + std::to_string(o.draft_vocab) +
                           ", wanted a number of candidates, or 0 for the whole vocabulary");
    }
    if (o.sampler && !o.rng) throw RequestError("a sampled draft needs a random generator");
}

/// Whether the device's own kernels can draw it.
bool chains(const session::DeviceKernels* device, const DraftOptions& o) {
    if (!device || !device->steps().chain || o.draft_vocab) return false;
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
    const int64_t draft_vocab = options.draft_vocab < vocab() ? options.draft_vocab : 0;
    const bool on_device = chains(device.get(), options);
    latest_draft = nullptr;
    device_draft.begin();
    auto& plan = drafts.get({context, draft_vocab, options.sampler && !on_device, !on_device});
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
    if (!std::ranges::all_of(chained.log_sum, [](float x) { return std::isfinite(x); })) {
        throw BackendError("the drafter's logits are no numbers: its file is damaged");
    }
    DraftBlock block;
    block.tokens = std::move(chained.tokens);
    block.confidence = std::move(chained.confidences);
    if (!options.sampler) return block;
    block.device_draft = device_draft.keep(block.tokens, temperature, std::move(chained.log_sum));
    if (options.read_q) block.q = device_q(block.device_draft);
    return block;
}

std::vector<float> Session::Impl::device_q(uint64_t draft) {
    if (!device_draft.holds(draft)) {
        throw RequestError("q of draft " + std::to_string(draft) +
                           " is not on the device any more: ask for it before the next draft");
    }
    std::vector<float> q = read_all<float>(device->logits(), traffic);
    device_draft.to_q(q);
    return q;
}

void Session::Impl::verify(std::span<const int32_t> rows, bool read) {
    check_tokens(rows);
    if (rows.size() > state::kMaxRows) {
        throw RequestError("cannot verify " + std::to_string(rows.size()) + " rows at once, wanted 1 to " +
                           std::to_string(state::kMaxRows));
    }
    verified.clear();
    float* host = read ? verified.host_memory(state::kMaxRows, vocab()) : nullptr;
    verified.set(rows, forward(rows, graph::Logits::all, host), read);
}

void Session::Impl::commit(int64_t rows) {
    if (rows < 1 || rows > verified.size()) {
        throw RequestError("cannot commit " + std::to_string(rows) + " rows: " + std::to_string(verified.size()) +
                           " were verified at this frontier");
    }
    const auto joined = verified.tokens().first(rows);
    tokens.insert(tokens.end(), joined.begin(), joined.end());
    if (verified.read()) {
        logits.set(verified.host_row(rows - 1));
    } else {
        device->keep_frontier_row(verified.logits(), rows - 1);
        logits.set_on_device();
    }
    verified.clear();
    keep_checkpoint_if_due();
}

const Drafter* Session::drafter() const { return impl_->drafter.get(); }

DraftBlock Session::draft(int32_t anchor, const DraftOptions& options) {
    const DeviceCall call(*impl_);
    return impl_->draft(anchor, options);
}

std::span<const float> Session::verify(std::span<const int32_t> tokens) {
    const DeviceCall call(*impl_);
    impl_->verify(tokens, true);
    return impl_->verified.host_logits();
}

void Session::verify_on_device(std::span<const int32_t> tokens) {
    const DeviceCall call(*impl_);
    impl_->require_acceptance_kernels();
    impl_->verify(tokens, false);
}

std::vector<float> Session::device_q(uint64_t draft) {
    const DeviceCall call(*impl_);
    return impl_->device_q(draft);
}

std::map<std::string, std::string> Session::ops() const {
    const session::OwnSteps own = impl_->device ? impl_->device->steps() : session::OwnSteps{};
    const auto by = [&](bool ours, const char* other) { return ours ? "own (" + impl_->device->name() + ")" : other; };
    const bool on_cpu = impl_->model->weights().own_kernels;
    return {{"draft attention", by(own.attention, on_cpu ? "own (CPU)" : "ggml")},
            {"Markov head", by(own.chain, on_cpu ? "own (CPU) for a shortlist, else ggml" : "ggml")},
            {"acceptance", by(own.acceptance, "host")}};
}

void Session::commit(int64_t rows) {
    const DeviceCall call(*impl_);
    impl_->commit(rows);
}

}  // namespace ds4
