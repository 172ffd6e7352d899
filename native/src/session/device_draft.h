#pragma once
// What the latest draft left on the device: the distribution q that its proposals were drawn from.

#include <cstdint>
#include <span>
#include <vector>

namespace ds4::session {

/// A device's own kernels leave the logits of a draft, bias included, in DeviceKernels::logits() until the next draft.
/// This says which draft they are of, and what turns them into q: softmax at the temperature of the draws.
class DeviceDraft {
   public:
    /// A draft begins: the q of the one before is gone.
    void begin() {
        count_++;
        tokens_.clear();
    }
    /// Keeps what the draft that began last drew at a temperature. `log_sums` [block] are the logarithms of the sums of
    /// exp(logits / temperature). Returns the number of the draft, which is above 0.
    uint64_t keep(std::span<const int32_t> tokens, float temperature, std::vector<float> log_sums);

    /// Throws RequestError unless q of the draft of this number is still on the device.
    void require(uint64_t number) const;
    /// Throws RequestError unless `proposals` are the first tokens of that draft, drawn at this temperature.
    void require_drawn(uint64_t number, std::span<const int32_t> proposals, float temperature) const;
    /// q [block, vocab] from the logits [block, vocab], in their place.
    std::vector<float> q(std::vector<float> logits) const;

   private:
    bool has(uint64_t number) const { return !tokens_.empty() && number == count_; }

    uint64_t count_ = 0;           // drafts so far
    std::vector<int32_t> tokens_;  // empty when q is not on the device
    float temperature_ = 0;
    std::vector<float> log_sums_;
};

}  // namespace ds4::session
