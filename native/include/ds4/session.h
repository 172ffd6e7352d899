#pragma once
// A session: the state of one sequence in a model, and the forwards that extend it.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ds4/acceptance.h"
#include "ds4/drafter.h"
#include "ds4/model.h"
#include "ds4/sampling.h"

namespace ds4 {

struct SessionOptions {
    /// The number of positions that the session can hold.
    int64_t context = 4096;
    /// The type of cached keys: GGML_TYPE_F16 or GGML_TYPE_F32.
    ggml_type kv_type = GGML_TYPE_F16;
};

/// Options of Session::draft.
struct DraftOptions {
    /// The size of the draft vocabulary: at each position, the tokens with the highest base logits are the candidates.
    /// 0 is the whole vocabulary.
    int64_t draft_vocab = 0;
    /// Draws each proposal from q, the sampling policy's distribution over the candidates. Null proposes the arg max.
    Sampler* sampler = nullptr;
    /// The random generator of the draws; required with a sampler.
    Rng* rng = nullptr;
    /// Whether to read q at once. If not, a q that the device's own kernels have drawn from stays on the device.
    bool read_q = true;
};

/// The proposals of one draft. Row j belongs to the token at position + 1 + j, where the anchor is at `position`.
struct DraftBlock {
    std::vector<int32_t> tokens;      // [block]
    std::vector<float> confidence;    // [block]: P(accepted | those before are); empty without a confidence head
    std::vector<float> q;             // [block, candidates] over `candidates`, or [block, vocab]; empty for arg max
                                      // proposals, and for a q that stays on the device
    std::vector<int32_t> candidates;  // [block, candidates] ids; empty for the whole vocabulary
    uint64_t device_draft = 0;        // number of the draft, if q is on the device (until the next draft); else 0
};

/// Options of Session::accept.
struct DeviceAcceptOptions {
    /// The temperature of a sampling policy without other options. 0 is greedy and takes the likeliest token.
    float temperature = 0;
    /// The random generator of the draws, which gives one number a call; required unless the temperature is 0.
    Rng* rng = nullptr;
    /// The DraftBlock::device_draft of the draft that drew the proposals at the same temperature. With 0, q is 1 at
    /// each proposal.
    uint64_t device_draft = 0;
};

/// The beginning of a saved session. Whether the rest of the file is valid is checked only when it is loaded.
struct SavedSession {
    uint64_t model;    // Model::fingerprint
    uint64_t drafter;  // Drafter::fingerprint; 0 without one
    int64_t context;
    std::vector<int32_t> tokens;
    std::vector<int64_t> checkpoints;
};

/// Reads the beginning of a saved session. Throws FormatError for a file that is not a saved session, or truncated.
SavedSession read_saved_session(const std::string& path);

/// A function that is called with the number of finished positions and with their total. It may throw to stop the call.
using StepProgress = std::function<void(int64_t done, int64_t total)>;

/// The state of one sequence of tokens in a model. Only cancel() may be called while another call is running; any other
/// concurrent call throws RequestError. An error or a cancel leaves the session as it was before the call.
class Session {
   public:
    /// Throws RequestError for options out of range, BackendError if the device has not enough memory.
    Session(std::shared_ptr<const Model> model, const SessionOptions& options,
            std::shared_ptr<const Drafter> drafter = nullptr);
    ~Session();

    const Model& model() const;
    /// The drafter; null without one.
    const Drafter* drafter() const;
    int64_t context() const;
    ggml_type kv_type() const;
    /// The frontier: the number of committed positions.
    int64_t position() const;
    std::vector<int32_t> tokens() const;

    /// Extends the state by `tokens`, and keeps the logits of the last. Keeps checkpoints at the positions in
    /// `checkpoints`, ascending; a session has 16 at most. A later rewind to a kept checkpoint evaluates nothing.
    /// Throws RequestError if a token is out of range or the context is too short; Cancelled; BackendError.
    void prefill(std::span<const int32_t> tokens, const StepProgress& progress = {},
                 std::span<const int64_t> checkpoints = {});
    /// Does what prefill() does, without checkpoints, and writes the logits of every row to `out` [tokens, vocab].
    void evaluate(std::span<const int32_t> tokens, std::span<float> out, const StepProgress& progress = {});
    /// Returns the logits [vocab] at the frontier, for the token that follows the last one.
    std::span<const float> logits();
    /// Draws the token that follows the last one. The state is not extended.
    int32_t sample(Sampler& sampler, Rng& rng);

    /// Proposes the tokens after `anchor`, a token that is not in the state yet. Position, tokens and logits stay as
    /// they are. Throws RequestError without a drafter or for a token out of range; Cancelled; BackendError.
    DraftBlock draft(int32_t anchor, const DraftOptions& options);
    /// Reads q [block, vocab] of the latest draft from the device. Throws RequestError if that is another draft.
    std::vector<float> device_q(uint64_t device_draft);

    /// Evaluates 1 to 16 rows at the frontier, the anchor and then proposals, without moving it. Returns the logits
    /// [rows, vocab], valid until the next call; row i is for the token after token i. Throws as prefill does.
    std::span<const float> verify(std::span<const int32_t> tokens);
    /// Does what verify() does, but leaves the logits on the device, for accept().
    void verify_on_device(std::span<const int32_t> tokens);
    /// Returns whether the device has kernels that accept proposals.
    bool accepts_on_device() const;
    /// Returns whether the device drafts with its own kernels. They draw from the whole vocabulary, and know sampling
    /// policies that have only a temperature.
    bool drafts_on_device() const;
    /// Applies the acceptance rule `token` on the device. All verified rows except the anchor are proposals. Changes
    /// only the random generator. Throws RequestError without such kernels, without verified rows, or if the proposals
    /// are not those of the given draft; BackendError for logits that are not finite numbers.
    AcceptResult accept(const DeviceAcceptOptions& options);
    /// Returns the implementation of each op for which ds4 has device kernels: "own (CUDA)", "ggml" or "host".
    std::map<std::string, std::string> ops() const;
    /// Returns a line for each op with its implementation on the device of the head and the drafter, such as
    /// "attention: own (avx2)".
    std::string kernel_choice() const;
    /// Puts the first `rows` of the verified rows into the state; the others are dropped. Any other call that changes
    /// the state drops them all. Throws RequestError when fewer rows were verified; Cancelled from the wait for a
    /// remote device.
    void commit(int64_t rows);

    /// Shortens the state to `position`. Within the rings' slack nothing is evaluated; otherwise tokens are evaluated
    /// again from the nearest checkpoint.
    void rewind(int64_t position, const StepProgress& progress = {});
    /// Returns the position from which a rewind to `position` evaluates tokens again, or `position` for none.
    int64_t resume_point(int64_t position) const;
    /// Returns the positions of the checkpoints, ascending.
    std::vector<int64_t> checkpoints() const;
    /// Makes this session a copy of `source` at `position`, from its nearest checkpoint. Throws RequestError unless the
    /// position fits and both have the same model, drafter and KV type; Cancelled, which leaves this session empty.
    void copy_from(const Session& source, int64_t position, const StepProgress& progress = {});

    /// Writes the state to a temporary file beside `path` and renames it. Checkpoints at the positions in `checkpoints`
    /// are saved too, if the session has them.
    void save(const std::string& path, std::span<const int64_t> checkpoints = {});
    /// Opens a saved session with `context` positions, by default as many as it was saved with. Throws FormatError if
    /// the file is damaged, of another model, or longer than the context. The drafter's rings and the checkpoints are
    /// restored if the session was saved with the same drafter; otherwise the drafter sees new positions only.
    static std::unique_ptr<Session> load(std::shared_ptr<const Model> model, const std::string& path,
                                         std::shared_ptr<const Drafter> drafter = nullptr,
                                         std::optional<int64_t> context = std::nullopt);

    /// Stops the running call, or else the next one, with Cancelled, also while it waits for a remote device. Any
    /// thread may call it.
    void cancel();
    /// Withdraws a cancel that no call has responded to yet.
    void clear_cancel();
    /// Sets a function that long calls poll every few milliseconds. If it returns true, the call stops as by cancel().
    void set_interrupt(std::function<bool()> interrupt);

    class Impl;

   private:
    friend class SessionDiagnostics;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ds4
