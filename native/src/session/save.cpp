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

uint64_t body_size(const state::State& state, const session::ArchiveHeader& h) {
    uint64_t size = h.position * sizeof(int32_t) + h.logits * sizeof(float);
    each_piece(state, h.position, [&](ggml_tensor*, size_t bytes) { size += bytes; });
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
    if (!known_type || h.position < 0 || h.position > h.context || h.context > model.hyperparameters().context) {
        throw FormatError("'" + path + "' holds a session this build cannot continue");
    }
}

}  // namespace

void Session::save(const std::string& path) {
    Busy busy(impl_->busy);
    const Impl& s = *impl_;
    session::ArchiveHeader h{};
    h.kv_type = s.options.kv_type;
    h.model = s.model->fingerprint();
    h.context = s.options.context;
    h.position = s.position();
    h.written_end = s.written_end;
    h.logits = s.logits.size();
    std::vector<char> body(body_size(s.state, h));
    char* at = body.data();
    auto put = [&](const void* from, size_t bytes) { at = std::copy_n(static_cast<const char*>(from), bytes, at); };
    put(s.tokens.data(), s.tokens.size() * sizeof(int32_t));
    put(s.logits.data(), s.logits.size() * sizeof(float));
    each_piece(s.state, h.position, [&](ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_get(t, at, 0, bytes);
        at += bytes;
    });
    session::write_archive(path, h, body);
}

std::unique_ptr<Session> Session::load(std::shared_ptr<const Model> model, const std::string& path) {
    const session::Archive archive = session::read_archive(path);
    const session::ArchiveHeader& h = archive.header;
    check(*model, path, h);
    auto session = std::make_unique<Session>(model, SessionOptions{h.context, static_cast<ggml_type>(h.kv_type)});
    Impl& s = *session->impl_;
    const bool odd_logits = h.logits != 0 && h.logits != static_cast<uint64_t>(s.vocab());
    if (odd_logits || h.body != body_size(s.state, h)) {
        throw FormatError("'" + path + "' holds " + std::to_string(h.body) + " bytes of state, wanted " +
                          std::to_string(body_size(s.state, h)));
    }
    const char* at = archive.body.data();
    auto take = [&](void* to, size_t bytes) { std::copy_n(at, bytes, static_cast<char*>(to)), at += bytes; };
    s.tokens.resize(h.position);
    s.logits.resize(h.logits);
    take(s.tokens.data(), s.tokens.size() * sizeof(int32_t));
    take(s.logits.data(), s.logits.size() * sizeof(float));
    each_piece(s.state, h.position, [&](ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_set(t, at, 0, bytes);
        at += bytes;
    });
    s.written_end = h.written_end;
    return session;
}

}  // namespace ds4
