#pragma once
// Drawing a proposal inside a graph, by the same sampler as everything else. Runs on the CPU; a scheduler brings the
// row there from any other device.

#include <exception>
#include <span>
#include <vector>

#include "ds4/sampling.h"
#include "ops/ops.h"

namespace ds4::ops {

/// The state of one draft's draws. Filled before the graph runs, and owned by whoever runs it; the nodes hold its
/// address.
struct ProposalDraw {
    Sampler* sampler = nullptr;
    std::vector<int32_t> history;  // every token up to and including the anchor; draws are appended
    std::vector<double> uniforms;  // one a position
    size_t drawn = 0;              // positions done
    std::exception_ptr error;      // the first failure: a graph cannot be left by a throw

    /// Runs `body` unless something failed before, and keeps what it throws: ggml's C code cannot be thrown through.
    template <typename F>
    void attempt(F body) {
        if (error) return;
        try {
            body();
        } catch (...) {
            error = std::current_exception();
        }
    }

    /// Writes q of the policy over the logits z of the tokens `ids` (empty: the whole vocabulary).
    void distribution(std::span<const float> z, std::span<const int32_t> ids, std::span<float> q);
    /// Draws a token of `ids` from q, by the next uniform number.
    int32_t token(std::span<const float> q, std::span<const int32_t> ids);
};

/// q [width] of the policy over the logits z [width] of the tokens `ids` [width] I32 (null: the whole vocabulary).
ggml_tensor* proposal_distribution(const Build& b, ggml_tensor* z, ggml_tensor* ids, ProposalDraw* draw);

/// Token [1] I32 drawn from q [width] of the tokens `ids`, by the next uniform number.
ggml_tensor* proposal_token(const Build& b, ggml_tensor* q, ggml_tensor* ids, ProposalDraw* draw);

}  // namespace ds4::ops
