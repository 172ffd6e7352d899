#pragma once
// Where memory and threads lie on a machine of several nodes.

#include <cstddef>
#include <vector>

#include "machine/topology.h"

namespace ds4::machine {

/// The system's calls, as their manual pages have them; tests put others in their place.
struct MemoryCalls {
    long (*get_policy)(int* mode);
    long (*set_policy)(int mode, const unsigned long* nodes, unsigned long bits);
    long (*bind)(void* data, size_t bytes, int mode, const unsigned long* nodes, unsigned long bits);
};
const MemoryCalls& system_memory_calls();

/// While it lives, pages that this thread and those it starts touch first go to all nodes in turn, so that reading them
/// has the bandwidth of all. Does nothing with one node, where the thread has a policy already (numactl's), or where
/// the system refuses.
class ScopedInterleaving {
   public:
    explicit ScopedInterleaving(const Topology& topology, const MemoryCalls& calls = system_memory_calls());
    ~ScopedInterleaving();
    ScopedInterleaving(const ScopedInterleaving&) = delete;
    ScopedInterleaving& operator=(const ScopedInterleaving&) = delete;

    bool active() const { return active_; }
    /// Lets pages that lie in turn stay so: the system may otherwise move them to whom it sees reading them.
    void keep(void* data, size_t bytes) const;

   private:
    const MemoryCalls& calls_;
    std::vector<unsigned long> nodes_;
    bool active_ = false;
};

/// While it lives, the calling thread runs on these processors only; on any it might before when there are none, or
/// where the system cannot hold threads.
class ScopedAffinity {
   public:
    explicit ScopedAffinity(const std::vector<int>& cpus);
    ~ScopedAffinity();
    ScopedAffinity(const ScopedAffinity&) = delete;
    ScopedAffinity& operator=(const ScopedAffinity&) = delete;

   private:
    std::vector<int> before_;
};

}  // namespace ds4::machine
