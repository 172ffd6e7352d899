#pragma once
// The parts of a session, shared by the files of this folder.

#include <chrono>

#include "backend/connection_locks.h"
#include "backend/workers.h"
#include "drafter/hyperparameters.h"
#include "drafter/weights.h"
#include "ds4/session.h"
#include "graph/draft.h"
#include "session/archive.h"
#include "session/checkpoint.h"
#include "session/device_draft.h"
#include "session/device_kernels.h"
#include "session/frontier_logits.h"
#include "session/graph_cache.h"
#include "session/segments.h"
#include "session/traffic.h"
#include "session/verified_rows.h"
#include "weights/weights.h"

namespace ds4 {

struct Session::Impl {
    Impl(std::shared_ptr<const Model> model, const SessionOptions& options, std::shared_ptr<const Drafter> drafter);

    std::shared_ptr<const Model> model;
    backend::ConnectionLocks connections;
    std::shared_ptr<const Drafter> drafter;
    SessionOptions options;
    std::vector<ggml_backend_ptr> backends;
    backend::Workers workers;
    session::Traffic traffic;
    std::unique_ptr<session::DeviceKernels> device;  // null where the device has none of ours
    state::State state;
    session::GraphCache<graph::Shape, graph::Target> forwards;
    session::GraphCache<graph::DraftShape, graph::Draft> drafts;
    ops::ProposalDraw proposal_draw;
    session::Checkpoints checkpoints;

    std::vector<int32_t> tokens;  // its size is the frontier
    int64_t written_end = 0;      // one past the highest position ever written to the rings
    session::FrontierLogits logits;
    session::VerifiedRows verified;
    session::DeviceDraft device_draft;
    int64_t projected = 0;      // positions below it are in the drafter's context rings
    int64_t features_from = 0;  // positions below it have no features
    const graph::Draft* latest_draft = nullptr;

    std::atomic<bool> busy{false}, cancelled{false};
    std::function<bool()> interrupt;
    std::chrono::steady_clock::time_point last_poll{};

    int64_t position() const { return static_cast<int64_t>(tokens.size()); }
    int64_t vocab() const { return model->hyperparameters().vocab; }

    /// Throws RequestError unless `more` can follow the frontier.
    void check_tokens(std::span<const int32_t> more) const;
    /// One graph run of `rows` at the frontier, which stays where it is. The rows' logits go to `out`, unless it is
    /// null, and are returned where they were computed.
    const ggml_tensor* forward(std::span<const int32_t> rows, graph::Logits logits, float* out,
                               session::NodeWatch* watch = nullptr);
    /// Extends the frontier by `more` in chunks. `out` takes every row's logits, or is null. Chunks end at the `stops`
    /// among the positions, ascending, and a checkpoint is kept there. A throw undoes all of it.
    void extend(std::span<const int32_t> more, float* out, const StepProgress& progress,
                std::span<const int64_t> stops = {});
    void rewind(int64_t position, const StepProgress& progress);
    /// Where evaluating has to begin after going back to `position`.
    int64_t resume_point(int64_t position) const;
    void copy_from(const Impl& source, int64_t position, const StepProgress& progress);
    void verify(std::span<const int32_t> rows, bool read);
    void commit(int64_t rows);
    void ensure_logits();

    DraftBlock draft(int32_t anchor, const DraftOptions& options);
    /// The block whose base logits a graph has computed, by the device's own kernels.
    DraftBlock chain_on_device(const graph::Draft& draft, int32_t anchor, const DraftOptions& options);
    std::vector<float> device_q(uint64_t draft);
    void require_acceptance_kernels() const;
    /// Whether the verified proposals were drawn on the device, as `how` says. Throws RequestError where they were not.
    bool drawn_on_device(const DeviceAcceptOptions& how) const;
    AcceptResult accept(const DeviceAcceptOptions& how);

    /// Runs a graph; `what` names it in an error.
    void compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph, const std::string& what,
                 session::Segments between);
    /// Where the drafter's features come from; nothing without a drafter.
    graph::Taps taps() const;
    int64_t feature_capacity() const;
    void keep_checkpoint_if_due();
    /// The frontier goes back to `position`, inside the rings' slack.
    void lower_frontier(int64_t position);

    /// Runs `change`; when it throws, puts rings, frontier and logits back.
    template <typename F>
    void or_undo(F change);
    session::SnapshotCounters counters() const { return {position(), written_end, projected, features_from}; }
    std::shared_ptr<const session::Checkpoint> take_checkpoint() const;
    void restore(const session::Checkpoint& checkpoint);
    void restore(const std::string& path, const session::Archive& archive);
    bool stop_requested();
    void throw_if_stopped();
};

/// Marks a session busy for one call.
class Busy {
   public:
    explicit Busy(std::atomic<bool>& flag) : flag_(flag) {
        if (flag_.exchange(true)) {
            throw RequestError("this session is already in a call: use one session for each thread, or wait");
        }
    }
    ~Busy() { flag_ = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    std::atomic<bool>& flag_;
};

/// A call that may speak to the devices: its session is busy, and their connections are its own, for which it waits.
/// Throws RequestError, and Cancelled from the wait.
class DeviceCall {
   public:
    explicit DeviceCall(Session::Impl& s) : busy_(s.busy), held_(s.connections.hold([&s] { s.throw_if_stopped(); })) {}

   private:
    Busy busy_;
    backend::ConnectionLocks::Held held_;
};

}  // namespace ds4
