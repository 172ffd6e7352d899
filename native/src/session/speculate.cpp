// The steps of a speculative cycle: draft, verify, commit.

#include <algorithm>

#include "session/impl.h"

namespace ds4 {
namespace {

void read(const ggml_tensor* t, void* out) { ggml_backend_tensor_get(t, out, 0, ggml_nbytes(t)); }

template <typename T>
std::vector<T> read_all(const ggml_tensor* t) {
    std::vector<T> data(t ? ggml_nelements(t) : 0);
    if (t) read(t, data.data());
    return data;
}

DraftBlock read_block(const graph::Draft& d) {
    DraftBlock block;
    block.tokens.resize(d.tokens.size());
    for (size_t j = 0; j < d.tokens.size(); j++) read(d.tokens[j], &block.tokens[j]);
    const size_t width = d.q.empty() ? 0 : ggml_nelements(d.q[0]);
    block.q.resize(width * d.q.size());
    for (size_t j = 0; j < d.q.size(); j++) read(d.q[j], block.q.data() + j * width);
    if (width) block.ids = read_all<int32_t>(d.candidates);
    block.confidence = read_all<float>(d.confidence);
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

}  // namespace

DraftBlock Session::Impl::draft(int32_t anchor, const DraftOptions& options) {
    check(drafter.get(), options);
    check_tokens(std::span(&anchor, 1));
    throw_if_stopped();
    const drafter::Hyperparameters& hp = drafter->hyperparameters();
    const int64_t oldest = std::max(position() - hp.stages.window, features_from);
    const int64_t context = position() - std::clamp(projected, std::min(oldest, position()), position());
    const int64_t shortlist = options.shortlist < vocab() ? options.shortlist : 0;
    latest_draft = nullptr;
    auto& plan = drafts.get({context, shortlist, options.sampler != nullptr});
    graph::fill_draft_inputs(plan.built.in, hp, plan.shape, position(), features_from, anchor);
    if (options.sampler) {
        proposal_draw = {options.sampler, tokens, {}, 0, nullptr};
        proposal_draw.history.push_back(anchor);
        for (int64_t j = 0; j < hp.block; j++) proposal_draw.uniforms.push_back(options.rng->uniform());
    }
    compute(plan.scheduler.get(), plan.built.graph, "a draft");
    if (proposal_draw.error) std::rethrow_exception(std::exchange(proposal_draw.error, nullptr));
    projected = position();
    latest_draft = &plan.built;
    return read_block(plan.built);
}

void Session::Impl::commit(int64_t rows) {
    if (rows < 1 || rows > static_cast<int64_t>(verified.size())) {
        throw RequestError("cannot commit " + std::to_string(rows) + " rows: " + std::to_string(verified.size()) +
                           " were verified at this frontier");
    }
    tokens.insert(tokens.end(), verified.begin(), verified.begin() + rows);
    const auto last = verified_logits.begin() + (rows - 1) * vocab();
    logits.assign(last, last + vocab());
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
    return {read_all<float>(impl_->latest_draft->hidden), read_all<float>(impl_->latest_draft->base)};
}

std::span<const float> Session::verify(std::span<const int32_t> tokens) {
    Busy busy(impl_->busy);
    Impl& s = *impl_;
    s.check_tokens(tokens);
    if (tokens.size() > state::kMaxRows) {
        throw RequestError("cannot verify " + std::to_string(tokens.size()) + " rows at once, wanted 1 to " +
                           std::to_string(state::kMaxRows));
    }
    s.verified.clear();
    s.verified_logits.resize(state::kMaxRows * s.vocab());
    s.forward(tokens, graph::Logits::all, s.verified_logits.data());
    s.verified.assign(tokens.begin(), tokens.end());
    return std::span(s.verified_logits).first(tokens.size() * s.vocab());
}

void Session::commit(int64_t rows) {
    Busy busy(impl_->busy);
    impl_->commit(rows);
}

}  // namespace ds4
