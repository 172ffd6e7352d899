// Sessions of ds4.h.

#include <algorithm>

#include "ds4/acceptance.h"
#include "ds4/limits.h"
#include "handles.h"
#include "model/hyperparameters.h"

namespace ds4::c {
namespace {

SessionOptions session_options(const Model& model, const ds4_session_options& given) {
    SessionOptions options;
    options.context = given.context ? given.context : std::min(kDefaultContext, model.hyperparameters().context);
    if (given.kv_f32) options.kv_type = GGML_TYPE_F32;
    return options;
}

/// A session as its handle, put into `out`.
template <typename F>
ds4_status open(const ds4_engine* engine, ds4_session** session, F make) {
    return attempt([&] {
        ds4_session*& out = required(session, "session");
        out = nullptr;
        auto made = std::make_unique<ds4_session>();
        made->session = make(required(engine, "engine"));
        out = made.release();
    });
}

Session& native(ds4_session* handle) { return *required(handle, "session").session; }

/// Runs `body` on the session. What was verified before is dropped, whether it fails or not: its logits may be gone.
template <typename F>
ds4_status use(ds4_session* handle, F body) {
    return attempt([&] {
        ds4::Session& s = native(handle);
        handle->verified.clear();
        body(s);
    });
}

/// Does what use() does, for a `body` that moves the frontier, and forgets the draft. Later proposals depend on tokens
/// that the draft did not see, so its q is not theirs, even if the ids are the same.
template <typename F>
ds4_status move(ds4_session* handle, F body) {
    return use(handle, [&](ds4::Session& s) {
        handle->draft = {};
        body(s);
    });
}

std::span<const int32_t> span_of(const int32_t* tokens, size_t count) {
    return {count ? &required(tokens, "tokens") : nullptr, count};
}

/// Whether proposals are the first of a draft.
bool drafted(std::span<const int32_t> proposals, const DraftBlock& draft) {
    return proposals.size() <= draft.tokens.size() &&
           std::ranges::equal(proposals, std::span(draft.tokens).first(proposals.size()));
}

/// The verified proposals with their q: the draft's where they are the draft's and it drew them, else each by itself.
AcceptResult accept_verified(const ds4_session& all, ds4_sampler& by) {
    const std::span<const int32_t> proposals = std::span(all.verified).subspan(1);
    std::vector<int32_t> history = all.session->tokens();
    history.push_back(all.verified.front());
    const std::vector<float> certain(proposals.size(), 1.0f);
    Proposals proposed{proposals, certain, proposals};
    if (!all.draft.q.empty() && drafted(proposals, all.draft)) {
        const size_t candidates = all.draft.q.size() / all.draft.tokens.size();
        proposed.q = std::span(all.draft.q).first(proposals.size() * candidates);
        proposed.ids = all.draft.candidates.empty()
                           ? std::span<const int32_t>()
                           : std::span(all.draft.candidates).first(proposals.size() * candidates);
    }
    return accept(Acceptance::token, by.sampler, all.logits, proposed, history, by.rng);
}

}  // namespace
}  // namespace ds4::c

using namespace ds4::c;

ds4_status ds4_session_open(ds4_engine* engine, const ds4_session_options* options, ds4_session** session) {
    return open(engine, session, [&](const ds4_engine& e) {
        const auto chosen = session_options(*e.model, options ? *options : ds4_session_options{});
        return std::make_unique<ds4::Session>(e.model, chosen, e.drafter);
    });
}

ds4_status ds4_session_load(ds4_engine* engine, const char* path, ds4_session** session) {
    return open(engine, session,
                [&](const ds4_engine& e) { return ds4::Session::load(e.model, &required(path, "path"), e.drafter); });
}

ds4_status ds4_session_save(ds4_session* session, const char* path) {
    return attempt([&] { native(session).save(&required(path, "path")); });
}

void ds4_session_close(ds4_session* session) { delete session; }

int64_t ds4_position(const ds4_session* session) { return session->session->position(); }

ds4_status ds4_prefill(ds4_session* session, const int32_t* tokens, size_t count) {
    return move(session, [&](ds4::Session& s) { s.prefill(span_of(tokens, count)); });
}

ds4_status ds4_sample(ds4_session* session, ds4_sampler* sampler, int32_t* token) {
    return use(session, [&](ds4::Session& s) {
        ds4_sampler& by = required(sampler, "sampler");
        required(token, "token") = s.sample(by.sampler, by.rng);
    });
}

ds4_status ds4_logits(ds4_session* session, const float** logits) {
    return use(session, [&](ds4::Session& s) { required(logits, "logits") = s.logits().data(); });
}

ds4_status ds4_rewind(ds4_session* session, int64_t position) {
    return move(session, [&](ds4::Session& s) { s.rewind(position); });
}

ds4_status ds4_draft(ds4_session* session, int32_t anchor, ds4_sampler* sampler, int32_t* proposals, int32_t* count) {
    return use(session, [&](ds4::Session& s) {
        ds4_sampler& by = required(sampler, "sampler");
        int32_t& first = required(proposals, "proposals");
        const bool greedy = by.sampler.policy().greedy();
        session->draft = s.draft(anchor, {0, greedy ? nullptr : &by.sampler, greedy ? nullptr : &by.rng});
        std::ranges::copy(session->draft.tokens, &first);
        if (count) *count = static_cast<int32_t>(session->draft.tokens.size());
    });
}

ds4_status ds4_verify(ds4_session* session, int32_t anchor, const int32_t* proposals, int32_t k, const float** logits) {
    return use(session, [&](ds4::Session& s) {
        if (k < 0)
            throw ds4::RequestError("k is " + std::to_string(k) + ", wanted 0 to " + std::to_string(ds4::kMaxRows - 1) +
                                    " proposals");
        const auto more = span_of(proposals, static_cast<size_t>(k));
        std::vector<int32_t> rows{anchor};
        rows.insert(rows.end(), more.begin(), more.end());
        session->logits = s.verify(rows);
        session->verified = std::move(rows);
        if (logits) *logits = session->logits.data();
    });
}

ds4_status ds4_accept(ds4_session* session, ds4_sampler* sampler, int32_t* accepted, int32_t* next) {
    return attempt([&] {
        ds4_session& all = required(session, "session");
        if (all.verified.empty()) throw ds4::RequestError("nothing has been verified at this frontier");
        const ds4::AcceptResult result = accept_verified(all, required(sampler, "sampler"));
        required(accepted, "accepted") = result.accepted;
        required(next, "next") = result.token;
    });
}

ds4_status ds4_commit(ds4_session* session, int32_t rows) {
    return attempt([&] {
        native(session).commit(rows);
        session->verified.clear();
        session->draft = {};
    });
}

void ds4_cancel(ds4_session* session) { session->session->cancel(); }
