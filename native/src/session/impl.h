#pragma once
// The parts of a session, shared by the files of this folder.

#include <chrono>

#include "backend/workers.h"
#include "drafter/hyperparameters.h"
#include "drafter/weights.h"
#include "ds4/session.h"
#include "graph/draft.h"
#include "session/archive.h"
#include "session/checkpoint.h"
#include "session/device_kernels.h"
#include "session/graph_cache.h"
#include "session/segments.h"
#include "session/traffic.h"
#include "weights/weights.h"

namespace ds4 {

struct Session::Impl {
    Impl(std::shared_ptr<const Model> model, const SessionOptions& options, std::shared_ptr<const Drafter> drafter);

    std::shared_ptr<const Model> model;
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
    std::vector<float> logits;    // of the frontier; empty when not read, or not known
    bool row_kept = false;        // whether those that are not read are on the device

    std::vector<int32_t> verified;               // rows of the latest verify, until something else happens
    const ggml_tensor* verified_rows = nullptr;  // their logits [vocab, rows], where they were computed
    bool verified_read = false;                  // and whether they are here, too
    std::vector<float> verified_logits;          // [kMaxRows, vocab], allocated once
    int64_t projected = 0;                       // positions below it are in the drafter's context rings
    int64_t features_from = 0;                   // positions below it have no features
    const graph::Draft* latest_draft = nullptr;
    uint64_t drafts_made = 0;
    std::vector<int32_t> held;   // the latest draft's tokens, where q is still on the device
    float held_temperature = 0;  // at which they were drawn
    std::vector<float> log_sum;  // of each position's logits at that temperature

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
    /// Extends the frontier by `more` in chunks. `out` takes every row's logits, or is null. Chunks end at the `marks`
    /// among the positions, ascending, and a checkpoint is kept there. A throw undoes all of it.
    void extend(std::span<const int32_t> more, float* out, const StepProgress& progress,
                std::span<const int64_t> marks = {});
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
    std::vector<float> held_q(uint64_t draft);
    kernels::KernelChoice kernel_choice() const;
    void require_judge() const;
    bool drawn(const Judgement& how) const;
    Verdict judge(const Judgement& how);

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
    session::Mark mark() const { return {position(), written_end, projected, features_from}; }
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

}  // namespace ds4
