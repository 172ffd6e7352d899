#pragma once
// Measures how many processors other processes use.

#include <filesystem>
#include <mutex>
#include <vector>

#include "machine/topology.h"

namespace ds4::machine {

/// A measurement at one moment. All in seconds: the time of a steady clock, the busy time of the measured processors,
/// and this process's part of it.
struct CpuUsage {
    double time, busy, own;
};

/// Measures the usage of these processors now. Where the system does not tell (only Linux does), the busy time is
/// always 0. `root` is put before /proc.
CpuUsage usage(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

/// Returns how many of `cores` cores other processes left free between two measurements; at least 1.
int free_cores(int cores, const CpuUsage& before, const CpuUsage& after);

/// Measures the usage of the machine when asked, at most every quarter of a second. Threads synchronise after every
/// node of a graph, so all run at the speed of the slowest. Beside one busy process, a graph on all cores is slower
/// than on all but one, and two threads on two busy cores are many times slower than one. So the number of threads
/// follows the number of free cores.
class CpuLoad {
   public:
    /// Makes the first measurement.
    explicit CpuLoad(const Topology& topology, std::filesystem::path root = "/");
    /// Returns the number of cores that other processes left free between the last two measurements. Thread-safe.
    int free_cores();

   private:
    std::filesystem::path root_;
    std::vector<int> cpus_;
    int cores_, free_;
    CpuUsage last_;
    std::mutex mutex_;
};

}  // namespace ds4::machine
