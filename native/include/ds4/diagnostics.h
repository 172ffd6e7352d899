#pragma once
// What a session did and keeps, for tests, benchmarks and people who look for time.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ds4/session.h"

namespace ds4 {

/// Bytes between host and device so far: inputs of graphs, and what was read of their outputs. What the scheduler
/// copies for nodes that the device cannot compute is not counted.
struct TrafficCount {
    uint64_t to_device, to_host;
};

/// Intermediate results of the latest draft.
struct DraftTrace {
    size_t rows;                // [block]
    std::vector<float> hidden;  // [block, hidden]: collapsed streams before the last norm
    std::vector<float> base;    // [block, vocab]: logits without the Markov bias
};

/// The time of one node of a forward that ran by itself.
struct NodeTime {
    std::string op;                   // ggml's name
    std::vector<std::string> leaves;  // what it reads that no node made: weights by their names, state, inputs
    std::vector<int32_t> sources;     // the nodes it reads, by index
    double seconds;                   // 0 for a view
    int64_t experts;                  // experts that a node of experts reads; 0 where it does not choose among them
};

/// Statistics of one graph that a session keeps.
struct GraphStatistics {
    std::string kind;  // "forward" or "draft"
    int64_t rows;
    int64_t nodes;                           // views not counted
    int64_t splits;                          // runs of nodes on one device; 1 for a graph that one device computes
    std::map<std::string, int64_t> devices;  // nodes that each device computes
    std::map<std::string, int64_t> cpu_ops;  // nodes that the CPU computes beside other devices, by ggml's names
    uint64_t addresses;                      // a hash of the addresses of all nodes, which never changes
    uint64_t bytes;                          // memory that it runs in, on all devices
};

/// A view of a session, which must outlive it. Calls count as calls of the session: one at a time.
class SessionDiagnostics {
   public:
    explicit SessionDiagnostics(Session& session) : session_(session) {}

    TrafficCount traffic() const;
    /// The graphs that the session keeps, the most recently used first.
    std::vector<GraphStatistics> graphs() const;
    /// Runs the nodes of a verify of these rows one by one, in order, each timed with the wait for it. Drops the rows,
    /// and those verified before. Throws as Session::verify does.
    std::vector<NodeTime> node_times(std::span<const int32_t> tokens);
    /// Throws RequestError when nothing has been drafted yet.
    DraftTrace draft_trace() const;

   private:
    Session& session_;
};

}  // namespace ds4
