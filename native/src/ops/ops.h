#pragma once
// The ops a DS4 graph is made of: one interface, here; `generic/` composes each from ggml ops, so that it runs on
// every ggml backend. Shapes are ggml's (ne0 first); every activation is F32.
// Labels such as (M21) are equations of docs/model.md, (D12) of docs/dspark.md.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "ggml.h"
#include "kernel_choice.h"

namespace ds4::ops {

namespace device {
struct Slot;
}

/// Tensors that several nodes of one graph read.
struct Shared {
    std::unordered_map<const ggml_tensor*, ggml_tensor*> quantised;  // rows for products, by the rows they were made of
};

/// The graph that nodes are added to, and the implementations that compute them. State is written by nodes nobody
/// reads, so their place in the graph is their only order: `expanded` appends a node at once.
struct Build {
    ggml_context* ctx;
    ggml_cgraph* graph;
    kernels::KernelChoice choice = {};  // the implementation of each op on the device that runs these nodes
    std::shared_ptr<Shared> shared = std::make_shared<Shared>();
    std::vector<device::Slot>* slots = nullptr;  // takes the nodes of the device's own kernels, where it has them

    ggml_tensor* expanded(ggml_tensor* node) const {
        ggml_build_forward_expand(graph, node);
        return node;
    }
};

/// W x for a matrix W [columns, rows] and x [columns, n]: [rows, n].
ggml_tensor* matmul(const Build& b, ggml_tensor* w, ggml_tensor* x);
/// W_g x_g for the groups of rows of W [columns, rows * groups] and x [columns, groups, n]: [rows * groups, n].
ggml_tensor* grouped_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x);

/// W_e x for the chosen matrices e of W [columns, rows, experts]: x [columns, 1 or used, n], selection [used, n] I32.
/// Returns [rows, used, n].
ggml_tensor* expert_matmul(const Build& b, ggml_tensor* w, ggml_tensor* x, ggml_tensor* selection);

/// Rotary embedding of the last `dims` components, adjacent pairs, no magnitude factor (docs/model.md section 2.3).
struct Rope {
    int32_t dims;
    float base;
    float factor = 1;  // YaRN's s; 1 is plain RoPE
    float beta_fast = 32, beta_slow = 1;
    int32_t original_context = 0;
};

/// Rotates the tail of x [size, heads, n] in place and returns x after it; positions [n] I32 (negated: the inverse).
ggml_tensor* rope_tail(const Build& b, ggml_tensor* x, ggml_tensor* positions, const Rope& rope);

/// RMS norm of the rows of x with an optional weight [ne0].
ggml_tensor* rms_norm(const Build& b, ggml_tensor* x, ggml_tensor* weight, float epsilon);

/// Hyper-connections, (M2)-(M10).
struct HcWeights {
    ggml_tensor *fn, *base, *scale;
};
struct HcMix {
    ggml_tensor* pre;   // [streams, n]
    ggml_tensor* post;  // [streams, n]; null for the head
    ggml_tensor* comb;  // [destination, source, n]; null for the head
};
struct HcOptions {
    int32_t sinkhorn_iterations;
    float epsilon, norm_epsilon;
};

/// Computes the mix of a sub-layer (M2)-(M7) from the streams x [hidden, streams, n].
HcMix hc_mix(const Build& b, ggml_tensor* x, const HcWeights& w, const HcOptions& options);
/// The head's mix: `pre` alone, one scale (M36).
HcMix hc_head_mix(const Build& b, ggml_tensor* x, const HcWeights& w, const HcOptions& options);
/// The input of a sub-layer: the collapse of the streams (M8), normed by a weight [hidden], as h [hidden, n]; and the
/// mix.
struct HcInput {
    ggml_tensor* h;
    HcMix mix;
};
HcInput hc_open(const Build& b, ggml_tensor* x, const HcWeights& w, ggml_tensor* norm, const HcOptions& options);
/// The weighted sum of the streams: [hidden, n].
ggml_tensor* hc_collapse(const Build& b, ggml_tensor* x, ggml_tensor* pre);
/// Computes new streams (M10) from the sub-layer's output y [hidden, n].
ggml_tensor* hc_expand(const Build& b, ggml_tensor* y, ggml_tensor* x, const HcMix& mix);

/// Compressed rows of the blocks that a forward completes (M21)-(M24), before norm and RoPE. Indices count the rows of
/// the carry ring, then this forward's.
struct CompressInput {
    ggml_tensor *ring_kv, *ring_score;  // [width, capacity]
    ggml_tensor *kv, *score;            // [width, n]
    ggml_tensor* own;                   // [ratio * blocks] I32: the positions of each block
    ggml_tensor* previous = nullptr;    // likewise of the block before (M23), whose first halves are read; or null
    ggml_tensor* missing = nullptr;     // with it: [1, 2 * ratio, blocks], -inf for slots that no position has, else 0
    int64_t size, blocks;
};
/// Returns [size, blocks].
ggml_tensor* compress(const Build& b, const CompressInput& in);

/// Lightning indexer scores (M30): q [size, heads, n], keys [size, rows] F16 or F32, weights [heads, n],
/// mask [rows, n] F16 (0 or -inf). Returns [rows, n].
ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask);

/// The `count` greatest of each row of scores [rows, n]: [count, n] I32. The CPU's own are ascending, and of equal
/// scores the first count; ggml's have no order and no rule for ties.
ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count);

/// Attention of n queries over keys that are values too, with sinks (M17), (M18).
struct AttentionInput {
    ggml_tensor* q;                   // [size, heads, n]
    ggml_tensor* shared;              // [size, rows]: keys every query may see
    ggml_tensor* selected = nullptr;  // [size, k, n]: keys of one query each, or null
    ggml_tensor* mask;                // [rows + k, n] F32, 0 or -inf
    ggml_tensor* sinks;               // [heads]
};
/// Returns [size, heads, n].
ggml_tensor* attention(const Build& b, const AttentionInput& in);

/// Attention of a draft block (docs/dspark.md section 2.5): every row sees the same context and all rows of the block,
/// later ones too.
struct NoncausalInput {
    ggml_tensor* q;      // [size, heads, n]
    ggml_tensor* ring;   // [size, capacity] F16 or F32: context keys by position mod capacity
    ggml_tensor* block;  // [size, n] F32: keys of the block
    ggml_tensor* mask;   // [capacity + n, n] F32, 0 or -inf: which slots of the ring hold visible context
    ggml_tensor* sinks;  // [heads]
};
/// Returns [size, heads, n].
ggml_tensor* noncausal_attention(const Build& b, const NoncausalInput& in);

/// Router scores sqrt(softplus(W h)) [experts, n] (M31).
ggml_tensor* router_scores(const Build& b, ggml_tensor* router, ggml_tensor* h);

/// The sum of chosen scores is kept above the smallest normal F16, as every peer but the reference code does: 0 would
/// be NaN.
constexpr float kSmallestWeightSum = 6.103515625e-5f;

/// The inputs of a row's choice of experts (M32): its scores plus a bias [experts], or a table [used, vocab] I32 of the
/// tokens [n].
struct RouteBy {
    ggml_tensor *bias, *token_map, *tokens;
};
struct RouteOptions {
    int64_t used;
    float scale;
    bool normalise;
};
/// The chosen experts and their weights (M33).
struct Routes {
    ggml_tensor* experts;  // [used, n] I32
    ggml_tensor* weights;  // [used, n]
};
/// Chooses experts by scores [experts, n]. The CPU's own choice is ascending, and of equal scores the first; a table's
/// is as it stands.
Routes route(const Build& b, ggml_tensor* scores, const RouteBy& by, const RouteOptions& options);

struct MoeOptions {
    float clamp_routed, clamp_shared;  // 0 is no clamp
};
struct MoeWeights {
    ggml_tensor *gate, *up, *down;                       // [.., .., experts]
    ggml_tensor *shared_gate, *shared_up, *shared_down;  // 2-D
};
/// Routed experts plus the shared one (M34), (M35) of h [hidden, n].
ggml_tensor* moe(const Build& b, ggml_tensor* h, const Routes& routes, const MoeWeights& w, const MoeOptions& options);

}  // namespace ds4::ops
