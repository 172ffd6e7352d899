#pragma once
// The processors that this process may use: which cores they belong to, and which memory is near them.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace ds4::machine {

/// A logical processor. Those of one core share its units.
struct Cpu {
    int id, core;
};

/// A NUMA node: the processors that are near some memory.
struct Node {
    int id;
    int64_t memory;  // bytes; 0 where it has none or does not say
    std::vector<Cpu> cpus;
};

/// Nodes that have processors that were asked for. A machine that describes none is one node.
struct Topology {
    std::vector<Node> nodes;

    int cores() const;
    std::vector<int> cpus() const;
};

/// The processors that the affinity of the calling thread allows.
std::vector<int> allowed_cpus();

/// How `cpus` lie. `root` stands before /sys.
Topology read_topology(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

/// Cores of these that the control groups' quota leaves to this process; at least 1. Where some of a machine's cores
/// are fast and some sparing (Apple's), the fast ones. `root` stands before /proc and /sys.
int default_threads(const Topology& topology, const std::filesystem::path& root = "/");

/// `count` processors for threads that stay where they are: on nodes in turn, a core's second processor only when all
/// cores have one, beginning at the `first`-th. Fewer when there are fewer.
std::vector<int> cpus_for_threads(const Topology& topology, size_t count, size_t first);

}  // namespace ds4::machine
