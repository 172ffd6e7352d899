#include "session/impl.h"

#include <algorithm>

#include "backend/device.h"

namespace ds4 {
namespace {

constexpr int64_t kCheckpointEvery = 1024;
/// Rows whose logits are kept at once: 512 of V4's would take 264 MB.
constexpr int64_t kLogitRows = 128;

SessionOptions checked(const Model& model, const SessionOptions& options) {
    const int64_t trained = model.hyperparameters().context;
    if (options.context < 1 || options.context > trained) {
        throw RequestError("context is " + std::to_string(options.context) + ", wanted 1 to " +
                           std::to_string(trained) + ", the length the model was trained for");
    }
    if (options.kv_type != GGML_TYPE_F16 && options.kv_type != GGML_TYPE_F32) {
        throw RequestError("the KV type is " + std::string(ggml_type_name(options.kv_type)) + ", wanted f16 or f32");
    }
    return options;
}

state::Homes homes(const Model& model, const std::vector<ggml_backend_ptr>& backends) {
    const auto memory = [&](int device) { return ggml_backend_get_default_buffer_type(backends[device].get()); };
    state::Homes homes{{}, memory(model.device_map().head)};
    for (int device : model.device_map().layers) homes.layers.push_back(memory(device));
    return homes;
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<const Model> m, const SessionOptions& o, std::shared_ptr<const Drafter> d)
    : model(std::move(m)),
      connections(model->device_map().devices),
      drafter(std::move(d)),
      options(checked(*model, o)),
      backends(model->open_backends()),
      workers(backends.back().get(), model->workers()),
      device(session::DeviceKernels::open(*model, drafter.get(), options.kv_type, traffic)),
      state(model->hyperparameters(), options.context, options.kv_type, homes(*model, backends),
            drafter ? &drafter->hyperparameters() : nullptr),
      forwards([this](const graph::Shape& shape) {
          const model::Hyperparameters& hp = model->hyperparameters();
          return session::build_plan(backends, shape, graph::node_bound(hp, shape), [&](ggml_context* ctx) {
              return graph::build_target(ctx, hp, model->weights(), state.layers(), taps(), shape);
          });
      }),
      drafts([this](const graph::DraftShape& shape) {
          const bool own_attention = device && device->steps().attention;
          const graph::DraftSource source{model->weights(), *drafter, state.drafter(), &proposal_draw, own_attention};
          return session::build_plan(backends, shape, graph::node_bound(drafter->hyperparameters()),
                                     [&](ggml_context* ctx) { return graph::build_draft(ctx, source, shape); });
      }) {
    backend::set_abort_callback(
        backends.back().get(), [](void* self) { return static_cast<Impl*>(self)->stop_requested(); }, this);
}

void Session::Impl::check_tokens(std::span<const int32_t> more) const {
    if (more.empty()) throw RequestError("no tokens to evaluate: give at least one");
    for (size_t i = 0; i < more.size(); i++) {
        if (more[i] >= 0 && more[i] < vocab()) continue;
        throw RequestError("token " + std::to_string(more[i]) + " at index " + std::to_string(i) +
                           " is not in the vocabulary of " + std::to_string(vocab()));
    }
    const int64_t left = options.context - position();
    if (static_cast<int64_t>(more.size()) > left) {
        throw RequestError(std::to_string(more.size()) + " tokens do not fit: the context of " +
                           std::to_string(options.context) + " has " + std::to_string(left) +
                           " positions left; use a larger context");
    }
}

bool Session::Impl::stop_requested() {
    if (cancelled) return true;
    const auto now = std::chrono::steady_clock::now();
    if (!interrupt || now - last_poll < std::chrono::milliseconds(20)) return false;
    last_poll = now;
    if (interrupt()) cancelled = true;
    return cancelled;
}

void Session::Impl::throw_if_stopped() {
    if (!stop_requested()) return;
    cancelled = false;
    throw Cancelled();
}

const ggml_tensor* Session::Impl::forward(std::span<const int32_t> rows, graph::Logits wanted, float* out,
                                          session::NodeWatch* watch) {
    throw_if_stopped();
    const model::Hyperparameters& hp = model->hyperparameters();
    const auto count = static_cast<int64_t>(rows.size());
    const int64_t features = std::min(count, feature_capacity());
    auto& plan = forwards.get(graph::shape_of(hp, position(), count, wanted, features));
    const graph::Target& target = plan.built;
    for (const graph::Inputs& in : target.in) {
        graph::fill_inputs(in, hp, plan.shape, position(), rows, feature_capacity());
    }
    written_end = std::max(written_end, position() + count);
    traffic.to_device += plan.input_bytes;
    compute(plan.scheduler.get(), target.graph, std::to_string(count) + " rows", session::Segments({}, watch));
    if (target.logits && out) traffic.get(target.logits, out);
    return target.logits;
}

void Session::Impl::compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph, const std::string& what,
                            session::Segments between) {
    ggml_backend_sched_set_eval_callback(scheduler, between.none() ? nullptr : session::Segments::observe, &between);
    const ggml_status status = workers.compute(scheduler, graph);
    between.rethrow();
    if (status == GGML_STATUS_ABORTED) throw_if_stopped();
    if (status != GGML_STATUS_SUCCESS) {
        throw BackendError("running " + what + " on " + model->device_name() +
                           " failed: " + ggml_status_to_string(status));
    }
}

graph::Taps Session::Impl::taps() const {
    if (!drafter) return {};
    return {drafter->hyperparameters().taps, state.drafter().features};
}

int64_t Session::Impl::feature_capacity() const {
    return drafter ? state::context_capacity(drafter->hyperparameters()) : 0;
}

template <typename F>
void Session::Impl::or_undo(F change) {
    const auto before = take_checkpoint();
    const std::vector<int32_t> tokens_before = tokens;
    const session::FrontierLogits logits_before = logits;
    checkpoints.keep(before);
    try {
        change();
    } catch (...) {
        tokens = tokens_before;
        logits = logits_before;
        checkpoints.drop_after(position());
        restore(*before);
        throw;
    }
}

std::shared_ptr<const session::Checkpoint> Session::Impl::take_checkpoint() const {
    return session::take_checkpoint(state, counters());
}

void Session::Impl::restore(const session::Checkpoint& c) {
    session::restore_checkpoint(state, c);
    written_end = c.counters.written_end;
    projected = c.counters.projected;
    features_from = c.counters.features_from;
}

void Session::Impl::keep_checkpoint_if_due() {
    if (position() - checkpoints.newest_position() >= kCheckpointEvery) checkpoints.keep(take_checkpoint());
}

void Session::Impl::extend(std::span<const int32_t> more, float* out, const StepProgress& progress,
                           std::span<const int64_t> stops) {
    const auto total = static_cast<int64_t>(more.size()), start = position();
    std::vector<float> last(vocab());
    verified.clear();
    auto run = [&] {
        for (int64_t done = 0; done < total;) {
            const int64_t widest = graph::chunk_rows(position() + total - done);
            const auto stop = std::ranges::upper_bound(stops, position());
            const int64_t left = std::min(total - done, stop == stops.end() ? total : *stop - position());
            const int64_t rows = std::min(out ? std::min(widest, kLogitRows) : widest, left);
            const bool final = done + rows == total;
            const auto wanted = out ? graph::Logits::all : final ? graph::Logits::last : graph::Logits::none;
            const auto chunk = more.subspan(done, rows);
            forward(chunk, wanted, out ? out + done * vocab() : last.data());
            tokens.insert(tokens.end(), chunk.begin(), chunk.end());
            done += rows;
            if (stop != stops.end() && *stop == position()) checkpoints.keep(take_checkpoint());
            keep_checkpoint_if_due();
            if (progress) progress(done, total);
        }
        if (out) std::copy_n(out + (total - 1) * vocab(), vocab(), last.begin());
        logits.set(std::move(last));
    };
    if (total > state::kMaxRows) return or_undo(run);
    try {
        run();
    } catch (...) {  // so few rows past the frontier spoil nothing
        tokens.resize(start);
        checkpoints.drop_after(start);
        throw;
    }
}

void Session::Impl::rewind(int64_t target, const StepProgress& progress) {
    if (target < 0 || target > position()) {
        throw RequestError("cannot rewind to position " + std::to_string(target) + ": the session is at " +
                           std::to_string(position()));
    }
    verified.clear();
    if (target == position()) return;
    if (target == 0) written_end = features_from = 0;  // nothing before position 0 is ever read
    if (target == 0 || written_end - target <= state::kMaxRows) return lower_frontier(target);
    const std::vector<int32_t> all(tokens.begin(), tokens.begin() + target);
    const auto from = checkpoints.nearest(target);
    or_undo([&] {
        from ? restore(*from) : void(written_end = projected = features_from = 0);
        lower_frontier(from ? std::min(from->counters.position, target) : 0);
        if (position() < target) extend(std::span(all).subspan(position()), nullptr, progress);
    });
    checkpoints.drop_after(target);
}

int64_t Session::Impl::resume_point(int64_t target) const {
    if (target == position() || written_end - target <= state::kMaxRows) return target;
    const auto from = checkpoints.nearest(target);
    return from ? std::min(from->counters.position, target) : 0;
}

void Session::Impl::lower_frontier(int64_t target) {
    tokens.resize(target);
    logits.clear();
    // The window before `target` reaches further back than what the latest draft projected.
    if (target < projected) projected = 0;
    features_from = std::min(features_from, target);
    checkpoints.drop_after(target);
}

void Session::Impl::ensure_logits() {
    if (logits.on_host()) return;
    if (logits.on_device()) {
        std::vector<float> row(vocab());
        traffic.get(device->frontier_row(), row.data());
        return logits.set(std::move(row));
    }
    if (tokens.empty()) throw RequestError("nothing has been evaluated yet: prefill a prompt first");
    const int32_t last = tokens.back();
    or_undo([&] {
        rewind(position() - 1, {});
        extend(std::span(&last, 1), nullptr, {});
    });
}

}  // namespace ds4
