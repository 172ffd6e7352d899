#include <algorithm>
#include <string>
#include <utility>

#include "ds4/errors.h"
#include "ds4/sampling.h"
#include "sampling/policy.h"
#include "sampling/radix_select.h"
#include "sampling/softmax.h"

namespace ds4 {

namespace {

void zero_below(std::span<float> row, float limit) {
    for (float& x : row) x = x < limit ? 0 : x;
}

/// Zeroes the occurrences of `value` after the first `kept`, so that the lowest ids among equals stay.
void drop_later_ties(std::span<float> row, float value, size_t kept) {
    for (auto it = row.begin(); (it = std::find(it, row.end(), value)) != row.end(); ++it) {
        if (kept > 0) {
            --kept;
        } else {
            *it = 0;
        }
    }
}

}  // namespace

Sampler::Sampler(SamplingPolicy policy) : policy_(std::move(policy)) { policy_.validate(); }

/// Returns the logits after bias and penalties: the caller's own row when the policy has neither.
std::span<const float> Sampler::adjusted(std::span<const float> logits, std::span<const int32_t> history,
                                         std::span<const int32_t> ids) {
    if (!ids.empty() && ids.size() != logits.size()) {
        throw RequestError("sampler: " + std::to_string(ids.size()) + " candidates for " +
                           std::to_string(logits.size()) + " logits, wanted one id a logit");
    }
    if (policy_.logit_bias.empty() && !policy_.penalises()) return logits;
    adjusted_.assign(logits.begin(), logits.end());
    if (ids.empty()) {
        sampling::adjust_logits(policy_, history, adjusted_, counts_);
    } else {
        sampling::adjust_candidates(policy_, history, ids, adjusted_, counts_);
    }
    return adjusted_;
}

/// Zeroes the weights below the k-th largest logit. Compares logits, because several of them may round to one weight.
void Sampler::keep_top_k(std::span<const float> logits) {
    const auto k = static_cast<size_t>(policy_.top_k);
    if (k == 0 || k >= logits.size()) return;
    const float limit = sampling::cut_at_count(logits, k, keys_).value;
    for (size_t i = 0; i < logits.size(); ++i) row_[i] = logits[i] < limit ? 0 : row_[i];
}

void Sampler::keep_top_p() {
    if (policy_.top_p >= 1.0f) return;
    const auto cut = sampling::cut_at_mass(row_, sampling::sum(row_) * policy_.top_p, keys_);
    zero_below(row_, cut.value);
    drop_later_ties(row_, cut.value, cut.ties);
}

/// Zeroes the weights below min_p. The largest weight is exactly 1 here, so min_p needs no scaling.
void Sampler::keep_min_p() {
    if (policy_.min_p > 0.0f) zero_below(row_, policy_.min_p);
}

std::span<float> Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history,
                                       std::span<const int32_t> ids) {
    const auto found = adjusted(logits, history, ids);
    const float max = sampling::checked_max(found);
    row_.resize(found.size());
    if (policy_.greedy()) {
        std::fill(row_.begin(), row_.end(), 0.0f);
        row_[static_cast<size_t>(sampling::first_index_of(found, max))] = 1.0f;
        return row_;
    }
    sampling::exponentiate(found, max, policy_.temperature, row_);
    keep_top_k(found);
    keep_top_p();
    keep_min_p();
    sampling::divide(row_, sampling::sum(row_));
    return row_;
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> history, Rng& rng,
                        std::span<const int32_t> ids) {
    int32_t index;
    if (policy_.greedy()) {
        const auto found = adjusted(logits, history, ids);
        index = sampling::first_index_of(found, sampling::checked_max(found));
    } else {
        index = draw(distribution(logits, history, ids), rng.uniform());
    }
    return ids.empty() ? index : ids[static_cast<size_t>(index)];
}

}  // namespace ds4
