#include <algorithm>
#include <limits>
#include <utility>

#include "ds4/sampling.h"
#include "sampling/cut.h"
#include "sampling/policy.h"
#include "sampling/softmax.h"

namespace ds4 {

namespace {

void replace_below(std::span<float> row, float limit, float replacement) {
    for (float& x : row) x = x < limit ? replacement : x;
}

/// Zeroes the occurrences of `value` after the first `kept`: among equals the lowest ids stay.
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

/// Copies the row, applies what works on single logits, and returns the largest.
float Sampler::load(std::span<const float> logits, std::span<const int32_t> history) {
    row_.assign(logits.begin(), logits.end());
    sampling::adjust_logits(policy_, history, row_, counts_);
    return sampling::checked_max(row_);
}

void Sampler::keep_top_k() {
    const auto k = static_cast<size_t>(policy_.top_k);
    if (k == 0 || k >= row_.size()) return;
    replace_below(row_, sampling::cut_at_count(row_, k, keys_).value, -std::numeric_limits<float>::infinity());
}

void Sampler::keep_top_p(double mass) {
    if (policy_.top_p >= 1.0f) return;
    const auto cut = sampling::cut_at_mass(row_, mass * policy_.top_p, keys_);
    replace_below(row_, cut.value, 0.0f);
    drop_later_ties(row_, cut.value, cut.ties);
}

/// The likeliest token's weight is exactly 1 here, so min_p needs no scaling.
void Sampler::keep_min_p() {
    if (policy_.min_p > 0.0f) replace_below(row_, policy_.min_p, 0.0f);
}

std::span<const float> Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history) {
    const float max = load(logits, history);
    if (policy_.greedy()) {
        const auto best = static_cast<size_t>(sampling::first_index_of(row_, max));
        std::fill(row_.begin(), row_.end(), 0.0f);
        row_[best] = 1.0f;
        return row_;
    }
    keep_top_k();
    keep_top_p(sampling::exponentiate(row_, max, policy_.temperature));
    keep_min_p();
    sampling::divide(row_, sampling::sum(row_));
    return row_;
}

int32_t Sampler::sample(std::span<const float> logits, std::span<const int32_t> history, Rng& rng) {
    if (policy_.greedy()) {
        const float max = load(logits, history);
        return sampling::first_index_of(row_, max);
    }
    const auto probabilities = distribution(logits, history);
    return draw(probabilities, rng.uniform());
}

}  // namespace ds4
