#include "session/device_draft.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ds4::session {

uint64_t DeviceDraft::keep(std::vector<int32_t> tokens, float temperature, std::vector<float> log_sum) {
    tokens_ = std::move(tokens);
    temperature_ = temperature;
    log_sum_ = std::move(log_sum);
    return number_;
}

bool DeviceDraft::drew(uint64_t number, float temperature, std::span<const int32_t> proposals) const {
    return holds(number) && temperature == temperature_ && proposals.size() <= tokens_.size() &&
           std::ranges::equal(proposals, std::span(tokens_).first(proposals.size()));
}

void DeviceDraft::to_q(std::span<float> logits) const {
    const size_t vocab = logits.size() / log_sum_.size();
    for (size_t i = 0; i < logits.size(); i++) logits[i] = std::exp(logits[i] / temperature_ - log_sum_[i / vocab]);
}

}  // namespace ds4::session
