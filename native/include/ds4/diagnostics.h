#pragma once
// What a session can tell of its graphs, their times and its copies, for tests and measurements.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ds4/session.h"

namespace ds4 {

/// Bytes between host and device so far: inputs of graphs, and what was read of their outputs. What the scheduler
/// copies for nodes that the device cannot compute is not among them.
struct TrafficCount {
    uint64_t to_device, to_host;
};

/// What the latest draft computed on the way.
struct DraftTrace {
    size_t rows = 0;            // block
    std::vector<float> hidden;  // [block, hidden]: collapsed streams before the last norm
    std::vector<float> base;    // [block, vocab]: logits without the Markov bias
};

/// One node of a forward that ran by itself.
struct NodeTime {
    std::string op;                   // ggml's name
    std::vector<std::string> leaves;  // what it reads that no node made: weights by their names, state, inputs
    std::vector<int32_t> sources;     // the nodes it reads, by index
    double seconds;                   // 0 for a view
    int64_t experts;                  // of a node that reads experts: how many; 0 where it does not choose among them
};

/// One of the graphs that a session keeps.
struct GraphStatistics {
    std::string kind;  // "forward" or "draft"
    int64_t rows;
    int64_t nodes;                           // views not counted
    int64_t splits;                          // runs of nodes on one device; 1 is what a device without gaps has
    std::map<std::string, int64_t> devices;  // how many nodes each device computes
    std::map<std::string, int64_t> cpu_ops;  // what the CPU computes by ggml's names, where others compute, too
    uint64_t addresses;                      // of all nodes, as one number: it never changes
    uint64_t bytes;                          // of the memory that it runs in, on all devices
};

/// A view of a session, which is to outlive it. Its calls are calls of the session.
class SessionDiagnostics {
   public:
    explicit SessionDiagnostics(Session::Impl& session) : session_(&session) {}

    TrafficCount traffic() const;
    /// The graphs kept now, those used last first.
    std::vector<GraphStatistics> graphs() const;
    /// Runs the nodes of a verify of these rows one by one, in order, each timed with the wait for it. The rows are
    /// dropped, and those verified before. Throws as Session::prefill does.
    std::vector<NodeTime> node_times(std::span<const int32_t> tokens);
    /// Reads what the latest draft left. Throws RequestError where nothing has been drafted yet.
    DraftTrace draft_trace() const;

   private:
    Session::Impl* session_;
};

}  // namespace ds4
