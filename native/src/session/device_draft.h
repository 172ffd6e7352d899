#pragma once
// What the latest draft left on the device.

#include <cstdint>
#include <span>
#include <vector>

namespace ds4::session {

/// The draft whose q the device's own kernels have drawn from and keep as logits, until the next one begins.
class DeviceDraft {
   public:
    /// Another draft begins, by whatever means: q of the one before is gone.
    void begin() { number_++, tokens_.clear(); }
    /// The draft that began last was drawn on the device at this temperature; `log_sum` [block] are the logarithms of
    /// the sums of exp(logits / temperature). Returns its number, which is never 0.
    uint64_t keep(std::vector<int32_t> tokens, float temperature, std::vector<float> log_sum);

    /// Whether q of the draft of this number is there.
    bool holds(uint64_t number) const { return number == number_ && !tokens_.empty(); }
    /// Whether these are the first proposals of that draft, drawn at this temperature.
    bool drew(uint64_t number, float temperature, std::span<const int32_t> proposals) const;
    /// Turns the logits [block, vocab] of the draft that is there into q.
    void to_q(std::span<float> logits) const;

   private:
    uint64_t number_ = 0;
    std::vector<int32_t> tokens_;
    float temperature_ = 0;
    std::vector<float> log_sum_;
};

}  // namespace ds4::session
