#pragma once
// What the latest verify computed.

#include <cstdint>
#include <span>
#include <vector>

struct ggml_tensor;

namespace ds4::session {

/// Rows that were verified at the frontier and wait for a commit, with their logits where they were computed and, where
/// they were read, on the host. Whatever else writes to the state clears them.
class VerifiedRows {
   public:
    /// Forgets the rows; the host memory stays for the next ones.
    void clear() { tokens_.clear(), logits_ = nullptr, read_ = false; }
    /// Host memory for the logits of at most `rows` rows, allocated once.
    float* host_memory(int64_t rows, int64_t vocab) {
        vocab_ = vocab;
        host_.resize(static_cast<size_t>(rows * vocab));
        return host_.data();
    }
    /// Takes over what was verified. `logits` [vocab, rows] is where they were computed; `read`: they were written to
    /// `host_memory`, too.
    void set(std::span<const int32_t> tokens, const ggml_tensor* logits, bool read) {
        tokens_.assign(tokens.begin(), tokens.end());
        logits_ = logits;
        read_ = read;
    }

    int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
    bool read() const { return read_; }
    std::span<const int32_t> tokens() const { return tokens_; }
    /// All but the anchor; there is one.
    std::span<const int32_t> proposals() const { return tokens().subspan(1); }
    const ggml_tensor* logits() const { return logits_; }
    /// Of rows that were read: [rows, vocab], and one of them.
    std::span<const float> host_logits() const { return std::span(host_).first(tokens_.size() * vocab_); }
    std::span<const float> host_row(int64_t row) const { return host_logits().subspan(row * vocab_, vocab_); }

   private:
    std::vector<int32_t> tokens_;
    const ggml_tensor* logits_ = nullptr;
    bool read_ = false;
    std::vector<float> host_;
    int64_t vocab_ = 0;
};

}  // namespace ds4::session
