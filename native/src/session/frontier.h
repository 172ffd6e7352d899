#pragma once
// The frontier of a session: the tokens that are in the state, and how far the rings around it are valid.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "session/checkpoint.h"
#include "state/state.h"

namespace ds4::session {

/// The committed positions of a session. Rows past the frontier may have been written to the rings; they are
/// overwritten before they are read.
class Frontier {
   public:
    int64_t position() const { return std::ssize(tokens_); }
    /// The ids of the committed positions.
    const std::vector<int32_t>& tokens() const { return tokens_; }
    /// The counters that a checkpoint or an archive keeps beside the rings.
    Mark mark() const { return {position(), written_end_, projected_, features_from_}; }
    /// The position below which there are no features of the target, which a drafter reads.
    int64_t features_from() const { return features_from_; }

    /// Returns whether a rewind to `target` only has to lower the frontier: no row that is read there was overwritten.
    bool in_slack(int64_t target) const { return target == 0 || written_end_ - target <= state::kMaxRows; }
    /// Returns how many committed rows the next draft projects into its context rings; stages see `window` positions.
    int64_t rows_to_project(int64_t window) const {
        const int64_t oldest = std::min(std::max(position() - window, features_from_), position());
        return position() - std::clamp(projected_, oldest, position());
    }

    /// Records that a forward writes `rows` rows at the frontier.
    void write(int64_t rows) { written_end_ = std::max(written_end_, position() + rows); }
    /// Commits the tokens of rows that were written.
    void append(std::span<const int32_t> ids) { tokens_.insert(tokens_.end(), ids.begin(), ids.end()); }
    /// Records that a draft has projected all committed rows.
    void project() { projected_ = position(); }
    /// Drops the positions from `target` on.
    void lower(int64_t target) {
        if (target == 0) written_end_ = features_from_ = 0;  // nothing before position 0 is ever read
        tokens_.resize(target);
        // The window before `target` reaches further back than what the latest draft projected.
        if (target < projected_) projected_ = 0;
        features_from_ = std::min(features_from_, target);
    }
    /// Sets the tokens, and the counters of rings that were restored from a checkpoint or an archive. `tokens` may go
    /// on past the checkpoint's position; lower() drops the rest.
    void restore(std::vector<int32_t> tokens, const Mark& mark) {
        tokens_ = std::move(tokens);
        written_end_ = mark.written_end;
        projected_ = mark.projected;
        features_from_ = mark.features_from;
    }

   private:
    std::vector<int32_t> tokens_;
    int64_t written_end_ = 0;  // one past the highest position ever written to the rings
    int64_t projected_ = 0;    // positions below it are in the drafter's context rings
    int64_t features_from_ = 0;
};

}  // namespace ds4::session
