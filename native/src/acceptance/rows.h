#pragma once
// The two sides of an acceptance: the target's distributions p, made as they are asked for, and the drafter's q.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ds4/acceptance.h"
#include "ds4/sampling.h"

namespace ds4::speculation {

/// The target's rows of one verify. Row i sees the history and the proposals before it; a row that no rule asks for
/// costs nothing and is not looked at.
class TargetRows {
   public:
    TargetRows(Sampler& sampler, std::span<const float> logits, std::span<const int32_t> proposals,
               std::span<const int32_t> history);
    /// Probabilities [vocab] of what follows row i's token; the caller may overwrite them, and the next call does.
    std::span<float> distribution(size_t row);
    /// A token of that distribution.
    int32_t sample(size_t row, Rng& rng);

   private:
    std::span<const float> logits(size_t row) const { return logits_.subspan(row * vocab_, vocab_); }
    std::span<const int32_t> seen(size_t row) const;

    Sampler& sampler_;
    std::span<const float> logits_;
    size_t vocab_;
    size_t proposals_;
    std::vector<int32_t> tokens_;  // the history, then the proposals
};

/// q of one proposal; `ids` as in Proposals.
struct DraftRow {
    std::span<const float> q;
    std::span<const int32_t> ids;

    /// q of a token. Throws RequestError where it is not listed, or its q is no probability.
    double at(int32_t token) const;
};

/// q of proposal i.
DraftRow draft_row(const Proposals& proposals, size_t i);

}  // namespace ds4::speculation
