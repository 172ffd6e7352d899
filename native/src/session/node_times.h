#pragma once
// Measures the time of each node of a graph.

#include <chrono>
#include <unordered_map>
#include <vector>

#include "ds4/diagnostics.h"
#include "ggml-backend.h"

namespace ds4::session {

/// Measures each node of a graph. A scheduler calls it before and after each node, and runs each node by itself.
class NodeWatch {
   public:
    /// Called before a node (`ask`) and after it. Returns true if a segment has to end with the node.
    bool observe(ggml_tensor* node, bool ask);
    /// The times of the nodes, in the order in which they ran.
    const std::vector<NodeTime>& found() const { return found_; }

   private:
    void begin(const ggml_tensor* node);
    void end(const ggml_tensor* node);

    std::vector<NodeTime> found_;
    std::unordered_map<const ggml_tensor*, int32_t> index_;
    std::chrono::steady_clock::time_point begun_;
};

}  // namespace ds4::session
