#pragma once
// One conversation with a model: its state, and the forwards that extend it.

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
    /// Positions the session can hold.
    int64_t context = 4096;
    /// Type of cached keys: GGML_TYPE_F16 or GGML_TYPE_F32.
    ggml_type kv_type = GGML_TYPE_F16;
};

/// How a block is drafted.
struct DraftOptions {
    /// Draft vocabulary: candidates of each position, the likeliest by base logits. 0 is the whole vocabulary.
    int64_t draft_vocab = 0;
    /// Draws each proposal from q, the policy's distribution over the candidates; null proposes the arg max.
    Sampler* sampler = nullptr;
    /// The generator of the draws; needed with a sampler.
    Rng* rng = nullptr;
    /// Whether q is read at once. Otherwise a q that the device's own kernels have drawn from stays there.
    bool read_q = true;
};

/// The proposals of one block. Row j belongs to the token at the anchor's position + 1 + j.
struct DraftBlock {
    std::vector<int32_t> tokens;      // [block]
    std::vector<float> confidence;    // [block]: P(accepted | those before are); empty without a confidence head
    std::vector<float> q;             // [block, candidates] over `candidates`, or [block, vocab]; empty for arg max
                                      // proposals, and for a q that stays on the device
    std::vector<int32_t> candidates;  // [block, candidates] ids; empty for the whole vocabulary
    uint64_t device_draft = 0;        // number of a draft whose q is on the device, until the next draft; 0: it is not
};

/// How the device accepts proposals.
struct DeviceAcceptOptions {
    /// The temperature of a policy that has nothing else; greedy policies take the likeliest.
    float temperature = 0;
    /// The generator of the draws, one number a call; needed where the temperature is not greedy.
    Rng* rng = nullptr;
    /// DraftBlock::device_draft of the draft that the proposals were drawn in, at the same temperature; 0: q is 1 at
    /// each proposal.
    uint64_t device_draft = 0;
};

/// The beginning of a saved session. Only loading it tells whether the rest is whole.
struct SavedSession {
    uint64_t model;    // Model::fingerprint
    uint64_t drafter;  // Drafter::fingerprint; 0 without one
    int64_t context;
    std::vector<int32_t> tokens;
    std::vector<int64_t> checkpoints;
};

/// Reads the beginning of a saved session. Throws FormatError for a file that is no saved session, or cut off.
SavedSession read_saved_session(const std::string& path);

/// Called with the positions that are done and all that are to do; may throw, which stops the call.
using StepProgress = std::function<void(int64_t done, int64_t total)>;

/// Not safe for two threads at once (the second call is a RequestError), except for cancel().
/// After an error or a cancel the session is as before the call.
class Session {
   public:
    /// Throws RequestError for options out of range, BackendError when the device has no room.
    Session(std::shared_ptr<const Model> model, const SessionOptions& options,
            std::shared_ptr<const Drafter> drafter = nullptr);
    ~Session();

    const Model& model() const;
    /// Null without one.
    const Drafter* drafter() const;
    int64_t context() const;
    ggml_type kv_type() const;
    /// The frontier: the number of committed positions.
    int64_t position() const;
    std::vector<int32_t> tokens() const;

    /// Extends the state by `tokens`, keeping the logits of the last. Throws RequestError when a token is out of range
    /// or the context is too short, Cancelled, BackendError. Going back to the positions in `checkpoints`, ascending,
    /// is at once later, while they are among the 16 that are kept.
    void prefill(std::span<const int32_t> tokens, const StepProgress& progress = {},
                 std::span<const int64_t> checkpoints = {});
    /// The same, and writes the logits of every row to `out` [tokens, vocab].
    void evaluate(std::span<const int32_t> tokens, std::span<float> out, const StepProgress& progress = {});
    /// The logits [vocab] of the frontier: the distribution of what follows the last token.
    std::span<const float> logits();
    /// Draws what follows the last token; the state is not extended.
    int32_t sample(Sampler& sampler, Rng& rng);

    /// Proposes what follows `anchor`, a token that is not in the state yet. Changes nothing that other calls see.
    /// Throws RequestError without a drafter or for a token out of range, Cancelled, BackendError.
    DraftBlock draft(int32_t anchor, const DraftOptions& options);
    /// Reads q [block, vocab] of the latest draft from the device. Throws RequestError when the latest is another one.
    std::vector<float> device_q(uint64_t device_draft);

    /// Evaluates 1 to 16 rows at the frontier, which stays where it is: the anchor, then proposals. Returns logits
    /// [rows, vocab], row i being what follows token i; valid until the next call. Throws as prefill does.
    std::span<const float> verify(std::span<const int32_t> tokens);
    /// Verifies as verify() does, but leaves the logits on the device, for accept().
    void verify_on_device(std::span<const int32_t> tokens);
    /// Whether the device has kernels that accept proposals.
    bool accepts_on_device() const;
    /// Whether the device drafts with its own kernels: from the whole vocabulary, for policies of a temperature alone.
    bool drafts_on_device() const;
    /// Accepts what was verified by the rule `token`, on the device: all verified rows but the anchor are proposals.
    /// Changes nothing but the generator. Throws RequestError without such kernels, without verified rows, or where the
    /// draft is another; BackendError for logits that are no numbers.
    AcceptResult accept(const DeviceAcceptOptions& options);
    /// Which implementation computes what a device may have kernels of ds4's for: "own (CUDA)", "ggml", "host", by op.
    std::map<std::string, std::string> ops() const;
    /// The implementation of each op on the device of the head and the drafter, a line each: "attention: own (avx2)".
    std::string kernel_choice() const;
    /// Puts the first `rows` of the verified rows into the state; the others are dropped. Any other call that changes
    /// the state drops them all. Throws RequestError when fewer rows were verified; Cancelled from the wait for a remote
    /// device.
    void commit(int64_t rows);

    /// Shortens the state to `position`: at once within the rings' slack, by evaluating again from the nearest
    /// checkpoint otherwise.
    void rewind(int64_t position, const StepProgress& progress = {});
    /// The position from which a rewind to `position` evaluates again: `position` itself where going back is immediate.
    int64_t resume_point(int64_t position) const;
    /// Positions of the checkpoints, ascending.
    std::vector<int64_t> checkpoints() const;
    /// Becomes what `source` was at `position`, from its nearest checkpoint. Throws RequestError unless both are of the
    /// same model, drafter and KV type and the position fits; Cancelled, which leaves this session empty.
    void copy_from(const Session& source, int64_t position, const StepProgress& progress = {});

    /// Writes the state to a temporary name beside `path` and renames it.
    /// The checkpoints that there are at `checkpoints` are saved with it.
    void save(const std::string& path, std::span<const int64_t> checkpoints = {});
    /// Continues from a saved state, in a context of `context` positions, or as many as it was saved with. Throws
    /// FormatError when it is damaged, of another model, or longer. What a drafter knows of the past, and checkpoints,
    /// are restored when it was saved with the same one; otherwise it learns of new positions only.
    static std::unique_ptr<Session> load(std::shared_ptr<const Model> model, const std::string& path,
                                         std::shared_ptr<const Drafter> drafter = nullptr,
                                         std::optional<int64_t> context = std::nullopt);

    /// Stops the running call, or the next one, with Cancelled, also while it waits for a remote device. Any thread may
    /// call it.
    void cancel();
    /// Takes back a cancel that nothing has answered yet.
    void clear_cancel();
    /// Asked every few milliseconds of a long call; true stops it like cancel().
    void set_interrupt(std::function<bool()> interrupt);

    class Impl;

   private:
    friend class SessionDiagnostics;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ds4
