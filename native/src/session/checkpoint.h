#pragma once
// Copies of the rings in host memory, with which a session rewinds further than the rings' slack.

#include <cstdint>
#include <memory>
#include <vector>

#include "state/state.h"

namespace ds4::session {

/// The frontier of a session, and the positions for which its rings are valid.
struct Mark {
    int64_t position = 0;       // the frontier
    int64_t written_end = 0;    // one past the highest position ever written to the rings
    int64_t projected = 0;      // positions below it are in the drafter's context rings
    int64_t features_from = 0;  // positions below it have no features
};

/// The rings as they were at a frontier. Compressed rows are append-only and need no copy.
struct Checkpoint {
    Mark mark;
    std::vector<char> rings;
};

/// Returns whether the rings of a checkpoint hold all rows that a session at `position` reads. They do if the rows that
/// were written past it are within the slack.
bool reaches(const Mark& mark, int64_t position);

std::shared_ptr<const Checkpoint> take_checkpoint(const state::State& state, const Mark& mark);
void restore_checkpoint(const state::State& state, const Checkpoint& checkpoint);

/// The checkpoints of a session, by ascending position. When there are too many, the one that is closest to its
/// predecessor is dropped, but never the newest.
class Checkpoints {
   public:
    void keep(std::shared_ptr<const Checkpoint> checkpoint);
    /// Returns the newest checkpoint that reaches `position`, or null.
    std::shared_ptr<const Checkpoint> nearest(int64_t position) const;
    /// Returns the checkpoint at exactly `position`, or null.
    std::shared_ptr<const Checkpoint> at(int64_t position) const;
    /// Takes over the checkpoints of another session, up to `position`.
    void share(const Checkpoints& other, int64_t position);
    void clear() { kept_.clear(); }
    std::vector<int64_t> positions() const;
    /// Drops the checkpoints after `position`, since other tokens may follow there now.
    void drop_after(int64_t position);
    int64_t newest_position() const { return kept_.empty() ? 0 : kept_.back()->mark.position; }

   private:
    void drop_least_missed();

    std::vector<std::shared_ptr<const Checkpoint>> kept_;
};

}  // namespace ds4::session
