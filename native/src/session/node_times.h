#pragma once
// How long each node of a graph takes.

#include <chrono>
#include <unordered_map>
#include <vector>

#include "ds4/diagnostics.h"
#include "ggml-backend.h"

namespace ds4::session {

/// Told before and after each node, it wants every one to run by itself.
class NodeWatch {
   public:
    /// Before the node (`ask`), and after it where that returned true: whether the node is to end a segment.
    bool observe(ggml_tensor* node, bool ask);
    /// In the order they ran.
    const std::vector<NodeTime>& found() const { return found_; }

   private:
    void begin(const ggml_tensor* node);
    void end(const ggml_tensor* node);

    std::vector<NodeTime> found_;
    std::unordered_map<const ggml_tensor*, int32_t> index_;
    std::chrono::steady_clock::time_point begun_;
};

}  // namespace ds4::session
