#include <algorithm>

#include "session/archive.h"
#include "session/impl.h"

namespace ds4 {
namespace {

/// What follows tokens and logits: every ring whole, and the compressed rows finished before `position`.
template <typename F>
void each_piece(const state::State& state, int64_t position, F visit) {
    for (ggml_tensor* ring : state.rings()) visit(ring, ggml_nbytes(ring));
    for (auto [rows, ratio] : state.compressed()) visit(rows, rows->nb[1] * (position / ratio));
}

/// The drafter's rings come last, so that a session can continue without them.
template <typename F>
void each_drafter_piece(const state::State& state, F visit) {
    for (ggml_tensor* ring : state.drafter_rings()) visit(ring, ggml_nbytes(ring));
}

uint64_t target_size(const state::State& state, const session::ArchiveHeader& h) {
    uint64_t size = h.mark.position * sizeof(int32_t) + h.logits * sizeof(float);
    each_piece(state, h.mark.position, [&](ggml_tensor*, size_t bytes) { size += bytes; });
    return size;
}

uint64_t drafter_size(const state::State& state) {
    uint64_t size = 0;
    each_drafter_piece(state, [&](ggml_tensor*, size_t bytes) { size += bytes; });
    return size;
}

std::string hex(uint64_t x) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(x));
    return text;
}

void check(const Model& model, const std::string& path, const session::ArchiveHeader& h) {
    if (h.model != model.fingerprint()) {
        throw FormatError("'" + path + "' was saved with another model (" + hex(h.model) + ", this one is " +
                          hex(model.fingerprint()) + ")");
    }
    const bool known_type = h.kv_type == GGML_TYPE_F16 || h.kv_type == GGML_TYPE_F32;
    if (!known_type || h.mark.position < 0 || h.mark.position > h.context ||
        h.context > model.hyperparameters().context) {
        throw FormatError("'" + path + "' holds a session this build cannot continue");
    }
}

/// Whether the archive holds what this session's drafter knows of the past.
bool same_drafter(const Drafter* drafter, const session::ArchiveHeader& h) {
    return drafter && h.drafter == drafter->fingerprint();
}

void check_size(const std::string& path, uint64_t found, uint64_t wanted, bool more_may_follow) {
    if (found == wanted || (more_may_follow && found > wanted)) return;
    throw FormatError("'" + path + "' holds " + std::to_string(found) + " bytes of state, wanted " +
                      std::to_string(wanted));
}

}  // namespace

void Session::save(const std::string& path) {
    Busy busy(impl_->busy);
    Impl& s = *impl_;
    if (s.row_kept) s.ensure_logits();
    session::ArchiveHeader h{};
    h.kv_type = s.options.kv_type;
    h.model = s.model->fingerprint();
    h.drafter = s.drafter ? s.drafter->fingerprint() : 0;
    h.context = s.options.context;
    h.mark = s.mark();
    h.logits = s.logits.size();
    std::vector<char> body(target_size(s.state, h) + drafter_size(s.state));
    char* at = body.data();
    auto put = [&](const void* from, size_t bytes) { at = std::copy_n(static_cast<const char*>(from), bytes, at); };
    auto put_tensor = [&](ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_get(t, at, 0, bytes);
        at += bytes;
    };
    put(s.tokens.data(), s.tokens.size() * sizeof(int32_t));
    put(s.logits.data(), s.logits.size() * sizeof(float));
    each_piece(s.state, h.mark.position, put_tensor);
    each_drafter_piece(s.state, put_tensor);
    session::write_archive(path, h, body);
}

std::unique_ptr<Session> Session::load(std::shared_ptr<const Model> model, const std::string& path,
                                       std::shared_ptr<const Drafter> drafter) {
    const session::Archive archive = session::read_archive(path);
    const session::ArchiveHeader& h = archive.header;
    check(*model, path, h);
    const SessionOptions options{h.context, static_cast<ggml_type>(h.kv_type)};
    auto session = std::make_unique<Session>(model, options, drafter);
    Impl& s = *session->impl_;
    const bool odd_logits = h.logits != 0 && h.logits != static_cast<uint64_t>(s.vocab());
    if (odd_logits) check_size(path, h.logits, s.vocab(), false);
    const bool continues = same_drafter(drafter.get(), h);
    const uint64_t wanted = target_size(s.state, h) + (continues ? drafter_size(s.state) : 0);
    check_size(path, h.body, wanted, !continues && h.drafter != 0);
    const char* at = archive.body.data();
    auto take = [&](void* to, size_t bytes) { std::copy_n(at, bytes, static_cast<char*>(to)), at += bytes; };
    auto take_tensor = [&](ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_set(t, at, 0, bytes);
        at += bytes;
    };
    s.tokens.resize(h.mark.position);
    s.logits.resize(h.logits);
    take(s.tokens.data(), s.tokens.size() * sizeof(int32_t));
    take(s.logits.data(), s.logits.size() * sizeof(float));
    each_piece(s.state, h.mark.position, take_tensor);
    if (continues) each_drafter_piece(s.state, take_tensor);
    s.written_end = h.mark.written_end;
    s.projected = continues ? h.mark.projected : h.mark.position;
    s.features_from = continues ? h.mark.features_from : h.mark.position;
    return session;
}

}  // namespace ds4
