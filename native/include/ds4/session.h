#pragma once
// One conversation with a model: its state, and the forwards that extend it.

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ds4/drafter.h"
#include "ds4/model.h"
#include "ds4/sampling.h"
#include "ds4/speculation.h"

namespace ds4 {

struct SessionOptions {
    /// Positions the session can hold.
    int64_t context = 4096;
    /// Type of cached keys: GGML_TYPE_F16 or GGML_TYPE_F32.
    ggml_type kv_type = GGML_TYPE_F16;
};

/// How a block is drafted.
struct DraftOptions {
    /// Candidates of each position: the likeliest by base logits. 0 is the whole vocabulary.
    int64_t shortlist = 0;
    /// Draws each proposal from q, the policy's distribution over the candidates; null proposes the arg max.
    Sampler* sampler = nullptr;
    /// Where the draws come from; needed with a sampler.
    Rng* rng = nullptr;
    /// Whether q is wanted at once; else one that the device's own kernels have drawn from stays there.
    bool read_q = true;
};

/// The proposals of one block. Row j belongs to the token at the anchor's position + 1 + j.
struct DraftBlock {
    std::vector<int32_t> tokens;    // [block]
    std::vector<float> confidence;  // [block]: P(accepted | those before are); empty without a confidence head
    std::vector<float> q;           // [block, width] over `ids`, or over the vocabulary; empty for arg max proposals
    std::vector<int32_t> ids;       // [block, width] candidates; empty for the whole vocabulary
    uint64_t held = 0;              // number of a draft whose q is on the device, until the next one; 0: it is not
};

/// How the device is to judge what was verified.
struct Judgement {
    /// As a policy's that has nothing else; greedy policies take the likeliest.
    float temperature = 0;
    /// Where the draws come from, one number a call; needed where the temperature is not greedy.
    Rng* rng = nullptr;
    /// DraftBlock::held of the draft that the proposals were drawn in, at the same temperature; 0: q is 1 at each.
    uint64_t held = 0;
};

/// Bytes between host and device so far: inputs of graphs, and what was read of their outputs. What the scheduler
/// copies for nodes that the device cannot compute is not among them.
struct TrafficCount {
    uint64_t to_device, to_host;
};

/// What the latest draft computed on the way, for tests and diagnostics.
struct DraftTrace {
    std::vector<float> hidden;  // [block, hidden]: collapsed streams before the last norm
    std::vector<float> base;    // [block, vocab]: logits without the Markov bias
};

/// One node of a forward that ran by itself.
struct NodeTime {
    std::string op;                   // ggml's name
    std::vector<std::string> leaves;  // what it reads that no node made: weights by their names, state, inputs
    std::vector<int32_t> sources;     // the nodes it reads, by index
    double seconds;                   // 0 for a view
    int64_t experts;                  // of a node that reads experts: how many; 0 where it does not choose among them
};

/// One of the graphs that a session keeps, for diagnostics.
struct GraphFacts {
    std::string kind;  // "forward" or "draft"
    int64_t rows;
    int64_t nodes;                           // views not counted
    int64_t splits;                          // runs of nodes on one device; 1 is what a device without gaps has
    std::map<std::string, int64_t> devices;  // how many nodes each device computes
    std::map<std::string, int64_t> cpu_ops;  // what the CPU computes by ggml's names, where others compute, too
    uint64_t addresses;                      // of all nodes, as one number: it never changes
    uint64_t bytes;                          // of the memory that it runs in, on all devices
};

/// What the beginning of a saved session says; whether the rest is whole, only loading it tells.
struct SavedSession {
    uint64_t model;    // Model::fingerprint
    uint64_t drafter;  // Drafter::fingerprint; 0 without one
    int64_t context;
    std::vector<int32_t> tokens;
    std::vector<int64_t> checkpoints;
};

/// Throws FormatError where it is no saved session, or cut off.
SavedSession read_saved_session(const std::string& path);

/// Positions done and to do of a long call; may throw, which stops the call.
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
    /// The frontier: how many positions are in the state.
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
    DraftTrace draft_trace() const;
    /// q [block, vocab] of the latest draft, read from the device. Throws RequestError where it is not the one of this
    /// number.
    std::vector<float> held_q(uint64_t draft);

    /// Evaluates 1 to 16 rows at the frontier, which stays where it is: the anchor, then proposals. Returns logits
    /// [rows, vocab], row i being what follows token i; valid until the next call. Throws as prefill does.
    std::span<const float> verify(std::span<const int32_t> tokens);
    /// The same, but the logits stay on the device, for judge().
    void verify_unread(std::span<const int32_t> tokens);
    /// Whether the device has kernels that judge, and whether it drafts with its own: the whole vocabulary, for
    /// policies of a temperature alone.
    bool judges() const;
    bool drafts_on_device() const;
    /// Judges what was verified, token by token, on the device: all verified rows but the anchor are proposals. Changes
    /// nothing but the generator. Throws RequestError without such kernels, without verified rows, or where the draft
    /// is another; BackendError for logits that are no numbers.
    Verdict judge(const Judgement& how);
    /// Who computes what a device may have kernels of our own for, by name: "own (CUDA)", "ggml", "host".
    std::map<std::string, std::string> ops() const;
    /// The implementation of each op on the device of the head and the drafter, a line each: "attention: own (avx2)".
    std::string kernel_choice() const;
    TrafficCount traffic() const;
    /// Puts the first `rows` of the verified rows into the state; the others are gone. Any other call that changes the
    /// state drops them all. Throws RequestError when fewer rows were verified.
    void commit(int64_t rows);
    /// Runs the nodes of a verify of these rows one by one, in order, each timed with the wait for it. The rows are
    /// dropped, and those verified before. Throws as prefill does.
    std::vector<NodeTime> node_times(std::span<const int32_t> tokens);

    /// The graphs kept now, those used last first.
    std::vector<GraphFacts> graphs() const;

    /// Shortens the state to `position`: at once within the rings' slack, by evaluating again from the nearest
    /// checkpoint otherwise.
    void rewind(int64_t position, const StepProgress& progress = {});
    /// Where evaluating would have to begin: `position` itself where going back there is at once.
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

    /// Stops the running call, or the next one, with Cancelled. Any thread may call it.
    void cancel();
    /// Takes back a cancel that nothing has answered yet.
    void clear_cancel();
    /// Asked every few milliseconds of a long call; true stops it like cancel().
    void set_interrupt(std::function<bool()> interrupt);

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace ds4
