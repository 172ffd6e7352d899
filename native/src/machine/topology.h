#pragma once
// The processors that this process may use, with their cores and NUMA nodes.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ds4::machine {

/// A logical processor. Processors of one core share its execution units.
struct Cpu {
    int id, core;
};

/// A NUMA node: some memory, and the processors near it.
struct Node {
    int id;
    int64_t memory;  // bytes; 0 when the node has none or the system does not say
    std::vector<Cpu> cpus;
};

/// The nodes that have at least one of the requested processors. A machine that describes no nodes has one.
struct Topology {
    std::vector<Node> nodes;

    int cores() const;
    std::vector<int> cpus() const;
};

/// Returns the processors that the affinity of the calling thread allows.
std::vector<int> allowed_cpus();

/// Reads the nodes and cores of `cpus`. `root` is put before /sys.
Topology read_topology(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

/// Returns the default number of threads: the cores of `topology`, limited by the CPU quota of the control groups; at
/// least 1. On machines with fast and efficient cores (Apple's), only the fast ones count. `root` is put before /proc
/// and /sys.
int default_threads(const Topology& topology, const std::filesystem::path& root = "/");

/// Chooses `count` processors to pin threads to, or all when there are fewer. Takes nodes in turn, and the second
/// processor of a core only after the first ones of all cores. `first` is the index in this order at which to begin.
std::vector<int> cpus_for_threads(const Topology& topology, size_t count, size_t first);

}  // namespace ds4::machine
