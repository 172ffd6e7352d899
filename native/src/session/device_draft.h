#pragma once
// The latest draft's q on the device: the distribution that its proposals were drawn from.

#include <cstdint>
#include <span>
#include <vector>

namespace ds4::session {

/// A device's own kernels leave the logits of a draft, with the Markov bias, in DeviceKernels::logits() until the next
/// draft. This class records which draft they belong to, and turns them into q, their softmax at its temperature.
class DeviceDraft {
   public:
    /// Begins a draft; the q of the previous one is lost.
    void begin() {
        count_++;
        tokens_.clear();
    }
    /// Records the tokens and the temperature of the draft that began last. `log_sums` [block] are the logarithms of
    /// the sums of exp(logits / temperature). Returns the draft's number, which is above 0.
    uint64_t keep(std::span<const int32_t> tokens, float temperature, std::vector<float> log_sums);

    /// Throws RequestError unless q of the draft with this number is still on the device.
    void require(uint64_t number) const;
    /// Throws RequestError unless `proposals` are the first tokens of that draft, drawn at this temperature.
    void require_drawn(uint64_t number, std::span<const int32_t> proposals, float temperature) const;
    /// Turns logits [block, vocab] into q [block, vocab], in place.
    std::vector<float> q(std::vector<float> logits) const;

   private:
    bool has(uint64_t number) const { return !tokens_.empty() && number == count_; }

    uint64_t count_ = 0;           // drafts so far
    std::vector<int32_t> tokens_;  // empty when q is not on the device
    float temperature_ = 0;
    std::vector<float> log_sums_;
};

}  // namespace ds4::session
