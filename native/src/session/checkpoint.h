#pragma once
// Copies of the rings in host memory: how a session goes back further than the rings' slack.

#include <cstdint>
#include <memory>
#include <vector>

#include "state/state.h"

namespace ds4::session {

/// How far a session and its rings are.
struct SnapshotCounters {
    int64_t position = 0;       // the frontier
    int64_t written_end = 0;    // one past the highest position ever written to the rings
    int64_t projected = 0;      // positions below it are in the drafter's context rings
    int64_t features_from = 0;  // positions below it have no features
};

/// The rings as they were at a frontier. Compressed rows are append-only and need no copy.
struct Checkpoint {
    SnapshotCounters counters;
    std::vector<char> rings;
};

/// Whether the rings of a checkpoint hold what a session at `position` reads, whatever follows there: rows that were
/// written past it are within the slack.
bool reaches(const SnapshotCounters& counters, int64_t position);

std::shared_ptr<const Checkpoint> take_checkpoint(const state::State& state, const SnapshotCounters& counters);
void restore_checkpoint(const state::State& state, const Checkpoint& checkpoint);

/// The checkpoints a session keeps, oldest first. Of too many, the one that is missed least goes: that which lies the
/// least behind the one before it, so that they are dense near the frontier and where turns are short.
class Checkpoints {
   public:
    void keep(std::shared_ptr<const Checkpoint> checkpoint);
    /// The newest that reaches `position`, or null.
    std::shared_ptr<const Checkpoint> nearest(int64_t position) const;
    /// At exactly `position`, or null.
    std::shared_ptr<const Checkpoint> at(int64_t position) const;
    /// Takes over those of another session, up to `position`.
    void share(const Checkpoints& other, int64_t position);
    void clear() { kept_.clear(); }
    std::vector<int64_t> positions() const;
    /// Forgets what lies after `position`: other tokens may follow there now.
    void drop_after(int64_t position);
    int64_t newest_position() const { return kept_.empty() ? 0 : kept_.back()->counters.position; }

   private:
    void drop_least_missed();

    std::vector<std::shared_ptr<const Checkpoint>> kept_;
};

}  // namespace ds4::session
