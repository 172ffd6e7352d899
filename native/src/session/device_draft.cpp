#include "session/device_draft.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ds4/errors.h"

namespace ds4::session {

uint64_t DeviceDraft::keep(std::span<const int32_t> tokens, float temperature, std::vector<float> log_sums) {
    tokens_.assign(tokens.begin(), tokens.end());
    temperature_ = temperature;
    log_sums_ = std::move(log_sums);
    return count_;
}

void DeviceDraft::require(uint64_t number) const {
    if (has(number)) return;
    throw RequestError("q of draft " + std::to_string(number) +
                       " is not on the device any more: ask for it before the next draft");
}

void DeviceDraft::require_drawn(uint64_t number, std::span<const int32_t> proposals, float temperature) const {
    const bool first = has(number) && proposals.size() <= tokens_.size() &&
                       std::ranges::equal(proposals, std::span(tokens_).first(proposals.size()));
    if (first && temperature == temperature_) return;
    throw RequestError("what was verified was not drawn in draft " + std::to_string(number) + " at temperature " +
                       std::to_string(temperature) + ": accept the latest draft's own proposals");
}

std::vector<float> DeviceDraft::q(std::vector<float> logits) const {
    const size_t vocab = logits.size() / log_sums_.size();
    for (size_t i = 0; i < logits.size(); i++) {
        logits[i] = std::exp(logits[i] / temperature_ - log_sums_[i / vocab]);
    }
    return logits;
}

}  // namespace ds4::session
