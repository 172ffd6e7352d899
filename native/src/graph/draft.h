#pragma once
// One draft as one ggml graph: new context keys, the block through the stages, the Markov chain (docs/dspark.md
// section 2).

#include <compare>
#include <vector>

#include "ds4/drafter.h"
#include "graph/target.h"
#include "ops/device/kernel_nodes.h"
#include "ops/proposal.h"

namespace ds4::graph {

/// Two drafts of equal shape run the same graph.
struct DraftShape {
    int64_t context;      // committed positions whose features are projected first
    int64_t draft_vocab;  // candidates of each position; 0 is the whole vocabulary
    bool sampled;         // drawn by a policy, or arg max
    bool chained = true;  // the graph has the heads; else it ends at the base logits, and a device's kernels go on

    auto operator<=>(const DraftShape&) const = default;
    /// Whether it follows a prompt, and is not run again.
    bool wide() const { return context > state::kMaxRows; }
};

/// The tensors that change from draft to draft.
struct DraftInputs {
    ggml_tensor* tokens;              // [rows] I32: the anchor, then noise
    ggml_tensor* embedded;            // the same, on the embedding's device
    ggml_tensor* positions;           // [rows] I32
    ggml_tensor* inverse;             // [rows] I32: negated
    ggml_tensor* features = nullptr;  // [context] I32: slots to read in the feature ring
    ggml_tensor* slots = nullptr;     // [context] I64: slots to write in the context rings
    ggml_tensor* past = nullptr;      // [context] I32: their positions
    ggml_tensor* mask;                // [capacity + rows, rows] F32: visible context, then the block
};

struct Draft {
    ggml_cgraph* graph;
    DraftInputs in;
    ggml_tensor* hidden;                   // [hidden, block] F32: collapsed streams before the norm
    ggml_tensor* base;                     // [vocab, block] F32: logits without the Markov bias
    ggml_tensor* candidates;               // [draft_vocab, block] I32; null for the whole vocabulary
    std::vector<ggml_tensor*> tokens;      // [1] I32 by position
    std::vector<ggml_tensor*> q;           // [draft_vocab or vocab] F32 by position; empty when not sampled
    ggml_tensor* confidence;               // [1, block] F32 after the sigmoid; null without a confidence head
    std::vector<ops::device::Slot> slots;  // nodes of the device's own kernels
};

/// The tensors that a draft reads: the target's embedding and output matrix, the drafter, and their state.
struct DraftSource {
    const weights::Weights& target;
    const Drafter& drafter;
    const state::DrafterState& state;
    ops::ProposalDraw* draw;  // filled before every run of a sampled draft
    bool own_attention;       // by a device's own kernel, in slots
};

size_t node_bound(const drafter::Hyperparameters& hp);
Draft build_draft(ggml_context* ctx, const DraftSource& source, const DraftShape& shape);

/// Fills the inputs for an anchor at `position`. The context rows are [position - shape.context, position); of the
/// past, positions from `oldest` on are visible, the window permitting.
void fill_draft_inputs(const DraftInputs& in, const drafter::Hyperparameters& hp, const DraftShape& shape,
                       int64_t position, int64_t oldest, int32_t anchor);

}  // namespace ds4::graph
