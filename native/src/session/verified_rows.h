#pragma once
// The rows and the logits of the latest verify.

#include <cstdint>
#include <span>
#include <vector>

#include "ggml.h"
#include "state/state.h"

namespace ds4::session {

/// The rows of a verify, the anchor first, and their logits. They last until the next forward, which drops them first,
/// or until the frontier moves. A draft keeps them.
class VerifiedRows {
   public:
    explicit VerifiedRows(int64_t vocab) : vocab_(vocab) {}

    /// Forgets the rows.
    void drop() { tokens_.clear(); }
    /// Drops the rows, and returns memory for the logits [kMaxRows, vocab] of the next verify, allocated once.
    float* host_memory() {
        drop();
        logits_.resize(static_cast<size_t>(state::kMaxRows * vocab_));
        return logits_.data();
    }
    /// Records a verify of `tokens`: its logits [vocab, rows] on the device, and whether they were also written to
    /// host_memory().
    void set(std::span<const int32_t> tokens, const ggml_tensor* on_device, bool on_host) {
        tokens_.assign(tokens.begin(), tokens.end());
        on_device_ = on_device;
        on_host_ = on_host;
    }

    bool empty() const { return tokens_.empty(); }
    int64_t size() const { return std::ssize(tokens_); }
    /// The ids of the rows: the anchor, then proposals.
    std::span<const int32_t> tokens() const { return tokens_; }
    /// The ids of all rows except the anchor. Must not be called without rows.
    std::span<const int32_t> proposals() const { return tokens().subspan(1); }
    /// Whether the logits are in host memory.
    bool on_host() const { return on_host_; }
    /// The logits [rows, vocab] in host memory.
    std::span<const float> logits() const { return std::span(logits_).first(tokens_.size() * vocab_); }
    /// The logits [vocab] of one row in host memory.
    std::span<const float> row(int64_t i) const { return logits().subspan(i * vocab_, vocab_); }
    /// The logits [vocab, rows] on the device that computed them.
    const ggml_tensor* on_device() const { return on_device_; }

   private:
    int64_t vocab_;
    std::vector<int32_t> tokens_;
    std::vector<float> logits_;
    const ggml_tensor* on_device_ = nullptr;
    bool on_host_ = false;
};

}  // namespace ds4::session
