#include "session/impl.h"

#include <algorithm>

#include "backend/device.h"
#include "model/hyperparameters.h"

namespace ds4 {
namespace {

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

state::BufferTypes buffer_types(const Model& model, const std::vector<ggml_backend_ptr>& backends) {
    const auto memory = [&](int device) { return ggml_backend_get_default_buffer_type(backends[device].get()); };
    state::BufferTypes buffer_types{{}, memory(model.device_map().head)};
    for (int device : model.device_map().layers) buffer_types.layers.push_back(memory(device));
    return buffer_types;
}

}  // namespace

Session::Impl::Impl(std::shared_ptr<const Model> model, const SessionOptions& options,
                    std::shared_ptr<const Drafter> drafter)
    : model_(std::move(model)),
      drafter_(std::move(drafter)),
      options_(checked(*model_, options)),
      backends_(model_->open_backends()),
      workers_(backends_.back().get(), model_->workers()),
      device_(session::DeviceKernels::open(*model_, drafter_.get(), options_.kv_type, traffic_)),
      state_(model_->hyperparameters(), options_.context, options_.kv_type, buffer_types(*model_, backends_),
             drafter_ ? &drafter_->hyperparameters() : nullptr),
      forwards_([this](const graph::Shape& shape) {
          const model::Hyperparameters& hp = model_->hyperparameters();
          return session::build_plan(backends_, shape, graph::node_bound(hp, shape), [&](ggml_context* ctx) {
              return graph::build_target(ctx, hp, model_->weights(), state_.layers(), taps(), shape);
          });
      }),
      drafts_([this](const graph::DraftShape& shape) {
          const bool own_attention = device_ && device_->steps().attention;
          const graph::DraftSource source{model_->weights(), *drafter_, state_.drafter(), &proposal_draw_,
                                          own_attention};
          return session::build_plan(backends_, shape, graph::node_bound(drafter_->hyperparameters()),
                                     [&](ggml_context* ctx) { return graph::build_draft(ctx, source, shape); });
      }),
      kernel_choice_(model_->device_map().kernel_choice(model_->device_map().head)),
      verified_(model_->hyperparameters().vocab) {
    if (device_) device_->add_to(kernel_choice_);
    backend::set_abort_callback(
        backends_.back().get(), [](void* self) { return static_cast<Impl*>(self)->stop_requested(); }, this);
}

int64_t Session::Impl::vocab() const { return model_->hyperparameters().vocab; }

void Session::Impl::check_tokens(std::span<const int32_t> more) const {
    if (more.empty()) throw RequestError("no tokens to evaluate: give at least one");
    for (size_t i = 0; i < more.size(); i++) {
        if (more[i] >= 0 && more[i] < vocab()) continue;
        throw RequestError("token " + std::to_string(more[i]) + " at index " + std::to_string(i) +
                           " is not in the vocabulary of " + std::to_string(vocab()));
    }
    const int64_t left = options_.context - position();
    if (std::ssize(more) > left) {
        throw RequestError(std::to_string(more.size()) + " tokens do not fit: the context of " +
                           std::to_string(options_.context) + " has " + std::to_string(left) +
                           " positions left; use a larger context");
    }
}

bool Session::Impl::stop_requested() {
    if (cancelled_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (!interrupt_ || now - last_poll_ < std::chrono::milliseconds(20)) return false;
    last_poll_ = now;
    if (interrupt_()) cancelled_ = true;
    return cancelled_;
}

bool Session::Impl::stop_waiting() {
    if (!stop_requested()) return false;
    cancelled_ = false;
    return true;
}

void Session::Impl::throw_if_stopped() {
    if (stop_waiting()) throw Cancelled();
}

const ggml_tensor* Session::Impl::forward(std::span<const int32_t> rows, graph::Logits wanted, float* out,
                                          session::NodeWatch* watch) {
    verified_.drop();
    throw_if_stopped();
    const model::Hyperparameters& hp = model_->hyperparameters();
    const auto count = std::ssize(rows);
    const int64_t features = std::min(count, feature_capacity());
    auto& plan = forwards_.get(graph::shape_of(hp, position(), count, wanted, features));
    const graph::Target& target = plan.built;
    for (const graph::Inputs& in : target.in) {
        graph::fill_inputs(in, hp, plan.shape, position(), rows, feature_capacity());
    }
    frontier_.write(count);
    traffic_.to_device += plan.input_bytes;
    compute(plan.scheduler.get(), target.graph, std::to_string(count) + " rows", session::Segments({}, watch));
    if (target.logits && out) traffic_.get(target.logits, out);
    return target.logits;
}

void Session::Impl::compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph, const std::string& what,
                            session::Segments between) {
    ggml_backend_sched_set_eval_callback(scheduler, between.none() ? nullptr : session::Segments::observe, &between);
    const ggml_status status = workers_.compute(scheduler, graph);
    between.rethrow();
    if (status == GGML_STATUS_ABORTED) throw_if_stopped();
    if (status != GGML_STATUS_SUCCESS) {
        throw BackendError("running " + what + " on " + model_->device_name() +
                           " failed: " + ggml_status_to_string(status));
    }
}

graph::Taps Session::Impl::taps() const {
    if (!drafter_) return {};
    return {drafter_->hyperparameters().taps, state_.drafter().features};
}

int64_t Session::Impl::feature_capacity() const {
    return drafter_ ? state::context_capacity(drafter_->hyperparameters()) : 0;
}

Busy::Busy(Session::Impl& session) : session_(session) {
    if (!session_.begin_call()) {
        throw RequestError("this session is already in a call: use one session for each thread, or wait");
    }
}

Busy::~Busy() { session_.end_call(); }

Call::Call(Session::Impl& session)
    : busy_(session), lock_(session.endpoints(), [&] { return session.stop_waiting(); }) {}

}  // namespace ds4
