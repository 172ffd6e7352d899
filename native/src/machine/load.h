#pragma once
// How many of the processors others use.

#include <filesystem>
#include <mutex>
#include <vector>

#include "machine/topology.h"

namespace ds4::machine {

/// A moment: how long the processors have been busy in all, and how much of it was for this process; in seconds.
struct CpuUsage {
    double time, busy, own;
};

/// The present moment for these processors. Where the system does not tell (Linux does), nobody else is ever busy.
/// `root` stands before /proc.
CpuUsage usage(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

/// Of `cores`, those that others left free between two moments; at least 1.
int free_cores(int cores, const CpuUsage& before, const CpuUsage& after);

/// Looks at the machine now and then. Threads that meet after every node of a graph go at the pace of the one whose
/// processor someone else has: beside one busy process, all cores together are slower than all but one, and two threads
/// on two busy cores many times slower than one. So the number of threads follows what others leave.
class CpuLoad {
   public:
    /// The first moment is that of construction.
    explicit CpuLoad(const Topology& topology, std::filesystem::path root = "/");
    /// Cores that others left free lately. May be called by several threads.
    int free_cores();

   private:
    std::filesystem::path root_;
    std::vector<int> cpus_;
    int cores_, free_;
    CpuUsage last_;
    std::mutex mutex_;
};

}  // namespace ds4::machine
