#pragma once
// Places memory and threads on a machine with several NUMA nodes.

#include <cstddef>
#include <vector>

#include "machine/topology.h"

namespace ds4::machine {

/// The system calls get_mempolicy, set_mempolicy and mbind, with the arguments of their manual pages. Tests replace
/// them.
struct MemoryCalls {
    long (*get_policy)(int* mode);
    long (*set_policy)(int mode, const unsigned long* nodes, unsigned long bits);
    long (*bind)(void* data, size_t bytes, int mode, const unsigned long* nodes, unsigned long bits);
};
const MemoryCalls& system_memory_calls();

/// Interleaves memory for its lifetime: pages that this thread, and threads it starts, touch first are spread over all
/// nodes, so that reading them has the bandwidth of all nodes. Does nothing on a single node, when the thread already
/// has a memory policy (numactl's), or when the system refuses.
class ScopedInterleaving {
   public:
    explicit ScopedInterleaving(const Topology& topology, const MemoryCalls& calls = system_memory_calls());
    ~ScopedInterleaving();
    ScopedInterleaving(const ScopedInterleaving&) = delete;
    ScopedInterleaving& operator=(const ScopedInterleaving&) = delete;

    bool active() const { return active_; }
    /// Pins the policy of a range of memory. Without it, automatic NUMA balancing may move pages to the node that reads
    /// them.
    void keep(void* data, size_t bytes) const;

   private:
    const MemoryCalls& calls_;
    std::vector<unsigned long> nodes_;
    bool active_ = false;
};

/// Restricts the calling thread to these processors for its lifetime. Does nothing when `cpus` is empty or the system
/// has no affinity of threads.
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
