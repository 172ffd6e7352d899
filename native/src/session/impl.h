#pragma once
// The parts of a session, shared by the files of this folder.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/rpc_connection.h"
#include "backend/workers.h"
#include "drafter/hyperparameters.h"
#include "drafter/weights.h"
#include "ds4/diagnostics.h"
#include "ds4/session.h"
#include "graph/draft.h"
#include "session/archive.h"
#include "session/checkpoint.h"
#include "session/device_draft.h"
#include "session/device_kernels.h"
#include "session/frontier.h"
#include "session/frontier_logits.h"
#include "session/graph_cache.h"
#include "session/segments.h"
#include "session/traffic.h"
#include "session/verified_rows.h"
#include "weights/weights.h"

namespace ds4 {

/// The implementation of Session, whose calls hold a Call while they run. An error or a cancel leaves the state as it
/// was before the call.
class Session::Impl {
   public:
    Impl(std::shared_ptr<const Model> model, const SessionOptions& options, std::shared_ptr<const Drafter> drafter);
    ~Impl() { closing_.emplace(backend::ConnectionLock::for_destructor(endpoints())); }

    const Model& model() const { return *model_; }
    const Drafter* drafter() const { return drafter_.get(); }
    const SessionOptions& options() const { return options_; }
    int64_t position() const { return frontier_.position(); }
    const std::vector<int32_t>& tokens() const { return frontier_.tokens(); }
    const std::vector<std::string>& endpoints() const { return model_->connections().endpoints(); }
    int64_t vocab() const;

    /// Throws RequestError unless `more` can follow the frontier.
    void check_tokens(std::span<const int32_t> more) const;
    /// Extends the frontier by `more` in chunks. `out` receives the logits [tokens, vocab], or is null. A chunk ends,
    /// and a checkpoint is kept, at each position in `checkpoints_at`, ascending. An exception undoes all chunks.
    void extend(std::span<const int32_t> more, float* out, const StepProgress& progress,
                std::span<const int64_t> checkpoints_at = {});
    void rewind(int64_t position, const StepProgress& progress);
    int64_t resume_point(int64_t position) const;
    std::vector<int64_t> checkpoints() const { return checkpoints_.positions(); }
    void copy_from(const Impl& source, int64_t position, const StepProgress& progress);
    /// Returns the logits [vocab] at the frontier; evaluates the last token again if they are unknown.
    const std::vector<float>& logits();

    DraftBlock draft(int32_t anchor, const DraftOptions& options);
    std::vector<float> device_q(uint64_t draft);
    /// Returns the logits [rows, vocab] in host memory; empty unless `read`.
    std::span<const float> verify(std::span<const int32_t> rows, bool read);
    /// The implementation of each op on the head's device, decided when the session opened.
    const kernels::KernelChoice& kernel_choice() const { return kernel_choice_; }
    AcceptResult accept(const DeviceAcceptOptions& options);
    void require_device_acceptance() const;
    void commit(int64_t rows);

    void save(const std::string& path, std::span<const int64_t> checkpoints);
    /// Restores the session from an archive, which must be of this model.
    void restore(const std::string& path, const session::Archive& archive);

    /// The device's own kernels; null without them.
    const session::DeviceKernels* device_kernels() const { return device_.get(); }
    TrafficCount traffic() const { return {traffic_.to_device, traffic_.to_host}; }
    std::vector<GraphStatistics> graphs() const;
    std::vector<NodeTime> node_times(std::span<const int32_t> rows);
    DraftTrace draft_trace();

    /// Marks the session busy. Returns false if it already was.
    bool begin_call() { return !busy_.exchange(true); }
    void end_call() { busy_ = false; }
    void set_cancelled(bool cancelled) { cancelled_ = cancelled; }
    void set_interrupt(std::function<bool()> interrupt) { interrupt_ = std::move(interrupt); }
    bool stop_requested();
    /// Returns what stop_requested() does, for a wait that then ends with Cancelled, and clears the request.
    bool stop_waiting();

   private:
    /// Runs a graph of `rows` rows at the frontier, which is not moved. Drops verified rows first. Returns the logits
    /// on the device, and writes them to `out` unless it is null.
    const ggml_tensor* forward(std::span<const int32_t> rows, graph::Logits logits, float* out,
                               session::NodeWatch* watch = nullptr);
    /// Runs a graph; `what` names it in an error.
    void compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph, const std::string& what,
                 session::Segments between);
    void throw_if_stopped();

    /// Returns the target layers that the drafter reads features from; empty without a drafter.
    graph::Taps taps() const;
    int64_t feature_capacity() const;
    /// Draws, with the device's own kernels, the block whose base logits a graph has computed.
    DraftBlock chain_on_device(const graph::Draft& draft, int32_t anchor, const DraftOptions& options);

    void evaluate_chunks(std::span<const int32_t> more, float* out, const StepProgress& progress,
                         std::span<const int64_t> checkpoints_at);
    /// Lowers the frontier to `position`, which is within the rings' slack.
    void lower_frontier(int64_t position);
    /// Runs `change`. If it throws, restores rings, frontier and logits.
    template <typename F>
    void or_undo(F change);
    std::shared_ptr<const session::Checkpoint> take_checkpoint() const;
    void restore(const session::Checkpoint& checkpoint, std::vector<int32_t> tokens);
    void keep_checkpoint_if_due();

    std::optional<backend::ConnectionLock> closing_;  // held while the destructors of the members below free memory
    std::shared_ptr<const Model> model_;
    std::shared_ptr<const Drafter> drafter_;
    SessionOptions options_;
    std::vector<ggml_backend_ptr> backends_;
    backend::Workers workers_;
    session::Traffic traffic_;
    std::unique_ptr<session::DeviceKernels> device_;
    state::State state_;
    session::GraphCache<graph::Shape, graph::Target> forwards_;
    session::GraphCache<graph::DraftShape, graph::Draft> drafts_;
    ops::ProposalDraw proposal_draw_;
    kernels::KernelChoice kernel_choice_;

    session::Frontier frontier_;
    session::FrontierLogits logits_;
    session::VerifiedRows verified_;
    session::DeviceDraft device_draft_;
    session::Checkpoints checkpoints_;
    const graph::Draft* latest_draft_ = nullptr;  // its graph, for draft_trace

    std::atomic<bool> busy_{false}, cancelled_{false};
    std::function<bool()> interrupt_;
    std::chrono::steady_clock::time_point last_poll_{};
};

/// Marks a session busy during one call. The constructor throws RequestError if another call is running.
class Busy {
   public:
    explicit Busy(Session::Impl& session);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Session::Impl& session_;
};

/// Marks a session busy, and locks its connections to remote devices for one call. The constructor waits for them, and
/// throws Cancelled if the session is cancelled meanwhile.
class Call {
   public:
    explicit Call(Session::Impl& session);

   private:
    Busy busy_;
    backend::ConnectionLock lock_;
};

}  // namespace ds4
