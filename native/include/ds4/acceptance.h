#pragma once
// Acceptance of proposals by rejection sampling: exact for any q that is known exactly (docs/dspark.md section 3).

#include <cstdint>
#include <span>

#include "ds4/sampling.h"

namespace ds4 {

/// The rule by which proposals are accepted; all three leave the target's distribution exactly.
enum class Acceptance {
    token,  // Leviathan et al. 2023, Chen et al. 2023: each proposal by min(1, p / q), residual on the first rejection
    match,  // draw from p at every row, accept while the draw equals the proposal
    block,  // Sun et al. 2024, block verification: the whole block jointly, never fewer accepted on average than
            // `token`
};

/// Proposals and the distributions they were drawn from.
struct Proposals {
    std::span<const int32_t> tokens;  // [k]
    /// q of every proposal, [k, width]: over the whole vocabulary when `ids` is empty, else over the listed tokens.
    /// Empty will do where no rule reads it: for `match`, and for greedy policies.
    std::span<const float> q;
    std::span<const int32_t> ids;  // [k, width], distinct in a row; or empty
};

struct AcceptResult {
    int32_t accepted;  // n, 0..k
    int32_t token;     // the recovered token (n < k) or the bonus (n = k): the next anchor
};

/// Accepts or rejects k proposals by the target's logits [k + 1, vocab], row i being what follows proposal i - 1 (row
/// 0: the anchor). `history`: every token up to and including the anchor; row i sees the proposals before it, too.
/// Greedy policies draw nothing from `rng`. Rows that decide nothing are not looked at. Throws RequestError for shapes
/// that do not fit, ids outside the vocabulary, a proposal that its q does not list, a q that is no distribution, and a
/// row without a token; BackendError for NaN logits.
AcceptResult accept(Acceptance rule, Sampler& sampler, std::span<const float> logits, const Proposals& proposals,
                    std::span<const int32_t> history, Rng& rng);

}  // namespace ds4
