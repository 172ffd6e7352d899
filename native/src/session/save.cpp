#include <algorithm>

#include "session/archive.h"
#include "session/impl.h"

namespace ds4 {
namespace {

/// Visits the tensors that are saved after tokens and logits: each ring, and the compressed rows before `position`.
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

template <typename Each>
uint64_t size_of(Each each) {
    uint64_t size = 0;
    each([&](ggml_tensor*, size_t bytes) { size += bytes; });
    return size;
}

/// Tokens, and positions of checkpoints.
uint64_t beginning_size(const session::ArchiveHeader& h) {
    return h.mark.position * sizeof(int32_t) + h.checkpoints * sizeof(int64_t);
}

uint64_t target_size(const state::State& state, const session::ArchiveHeader& h) {
    return beginning_size(h) + h.logits * sizeof(float) +
           size_of([&](auto visit) { each_piece(state, h.mark.position, visit); });
}

uint64_t drafter_size(const state::State& state) {
    return size_of([&](auto visit) { each_drafter_piece(state, visit); });
}

uint64_t rings_size(const state::State& state) {
    uint64_t size = drafter_size(state);
    for (ggml_tensor* ring : state.rings()) size += ggml_nbytes(ring);
    return size;
}

/// Fills a body from its beginning on.
class Writer {
   public:
    explicit Writer(uint64_t size) : body_(size), at_(body_.data()) {}
    template <typename T>
    void put(const T* from, size_t count) {
        at_ = std::copy_n(reinterpret_cast<const char*>(from), count * sizeof(T), at_);
    }
    void put_tensor(ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_get(t, at_, 0, bytes);
        at_ += bytes;
    }
    const std::vector<char>& body() const { return body_; }

   private:
    std::vector<char> body_;
    char* at_;
};

/// Reads one whose size has been checked.
class Reader {
   public:
    explicit Reader(const std::vector<char>& body) : at_(body.data()) {}
    template <typename T>
    void take(T* to, size_t count) {
        std::copy_n(at_, count * sizeof(T), reinterpret_cast<char*>(to));
        at_ += count * sizeof(T);
    }
    void take_tensor(ggml_tensor* t, size_t bytes) {
        if (bytes) ggml_backend_tensor_set(t, at_, 0, bytes);
        at_ += bytes;
    }

   private:
    const char* at_;
};

std::vector<std::shared_ptr<const session::Checkpoint>> chosen(const session::Checkpoints& kept,
                                                               std::span<const int64_t> positions) {
    std::vector<std::shared_ptr<const session::Checkpoint>> found;
    for (const int64_t position : positions) {
        if (auto checkpoint = kept.at(position)) found.push_back(std::move(checkpoint));
    }
    return found;
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
        h.context > model.hyperparameters().context || h.checkpoints > h.body / sizeof(session::Mark)) {
        throw FormatError("'" + path + "' holds a session this build cannot continue");
    }
}

/// Whether the rings of a drafter in the archive, perhaps none, are those of this session's.
bool same_drafter(const Drafter* drafter, const session::ArchiveHeader& h) {
    return h.drafter == (drafter ? drafter->fingerprint() : 0);
}

void check_size(const std::string& path, uint64_t found, uint64_t wanted, bool more_may_follow) {
    if (found == wanted || (more_may_follow && found > wanted)) return;
    throw FormatError("'" + path + "' holds " + std::to_string(found) + " bytes of state, wanted " +
                      std::to_string(wanted));
}

}  // namespace

void Session::Impl::save(const std::string& path, std::span<const int64_t> positions) {
    if (logits_.on_device()) logits();
    const auto kept = chosen(checkpoints_, positions);
    session::ArchiveHeader h{};
    h.kv_type = options_.kv_type;
    h.model = model_->fingerprint();
    h.drafter = drafter_ ? drafter_->fingerprint() : 0;
    h.context = options_.context;
    h.mark = frontier_.mark();
    h.logits = logits_.row().size();
    h.checkpoints = kept.size();
    const uint64_t size = target_size(state_, h) + drafter_size(state_);
    Writer out(size + kept.size() * (sizeof(session::Mark) + rings_size(state_)));
    auto put_tensor = [&](ggml_tensor* t, size_t bytes) { out.put_tensor(t, bytes); };
    out.put(tokens().data(), tokens().size());
    for (const auto& each : kept) out.put(&each->mark.position, 1);
    out.put(logits_.row().data(), logits_.row().size());
    each_piece(state_, h.mark.position, put_tensor);
    each_drafter_piece(state_, put_tensor);
    for (const auto& each : kept) {
        out.put(&each->mark, 1);
        out.put(each->rings.data(), each->rings.size());
    }
    session::write_archive(path, h, out.body());
}

/// Session::load, once the archive is known to be one of this model.
void Session::Impl::restore(const std::string& path, const session::Archive& archive) {
    const session::ArchiveHeader& h = archive.header;
    if (h.logits != 0) check_size(path, h.logits, static_cast<uint64_t>(vocab()), false);
    const bool continues = same_drafter(drafter_.get(), h);
    const uint64_t kept = h.checkpoints * (sizeof(session::Mark) + rings_size(state_));
    check_size(path, h.body, target_size(state_, h) + (continues ? drafter_size(state_) + kept : 0), !continues);
    Reader in(archive.body);
    auto take_tensor = [&](ggml_tensor* t, size_t bytes) { in.take_tensor(t, bytes); };
    std::vector<int32_t> tokens(h.mark.position);
    in.take(tokens.data(), tokens.size());
    std::vector<int64_t> positions(h.checkpoints);
    in.take(positions.data(), positions.size());
    std::vector<float> row(h.logits);
    in.take(row.data(), row.size());
    logits_.set(std::move(row));
    each_piece(state_, h.mark.position, take_tensor);
    // Without the drafter's rings, it learns of new positions only.
    const session::Mark target_alone{h.mark.position, h.mark.written_end, h.mark.position, h.mark.position};
    frontier_.restore(std::move(tokens), continues ? h.mark : target_alone);
    if (!continues) return;
    each_drafter_piece(state_, take_tensor);
    for (uint64_t i = 0; i < h.checkpoints; i++) {
        auto checkpoint = std::make_shared<session::Checkpoint>();
        in.take(&checkpoint->mark, 1);
        checkpoint->rings.resize(rings_size(state_));
        in.take(checkpoint->rings.data(), checkpoint->rings.size());
        checkpoints_.keep(std::move(checkpoint));
    }
}

std::unique_ptr<Session> Session::load(std::shared_ptr<const Model> model, const std::string& path,
                                       std::shared_ptr<const Drafter> drafter, std::optional<int64_t> context) {
    const session::Archive archive = session::read_archive(path);
    const session::ArchiveHeader& h = archive.header;
    check(*model, path, h);
    if (context && *context < h.mark.position) {
        throw FormatError("'" + path + "' holds " + std::to_string(h.mark.position) +
                          " positions, more than the context of " + std::to_string(*context));
    }
    const SessionOptions options{context.value_or(h.context), static_cast<ggml_type>(h.kv_type)};
    const backend::ConnectionLock lock(model->connections().endpoints());
    auto session = std::make_unique<Session>(model, options, std::move(drafter));
    Call call(*session->impl_);
    session->impl_->restore(path, archive);
    return session;
}

SavedSession read_saved_session(const std::string& path) {
    const session::Archive archive = session::read_beginning(path, [](const session::ArchiveHeader& h) {
        const bool possible =
            h.mark.position >= 0 && static_cast<uint64_t>(h.mark.position) <= h.body && h.checkpoints <= h.body;
        return possible ? beginning_size(h) : h.body + 1;
    });
    const session::ArchiveHeader& h = archive.header;
    SavedSession saved{h.model, h.drafter, h.context, {}, {}};
    saved.tokens.resize(h.mark.position);
    saved.checkpoints.resize(h.checkpoints);
    Reader in(archive.body);
    in.take(saved.tokens.data(), saved.tokens.size());
    in.take(saved.checkpoints.data(), saved.checkpoints.size());
    return saved;
}

}  // namespace ds4
