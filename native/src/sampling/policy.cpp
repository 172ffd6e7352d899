#include "sampling/policy.h"

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <unordered_map>

#include "ds4/errors.h"

namespace ds4 {

namespace {

template <typename T>
void require(bool fine, const char* field, T found, const char* expected) {
    if (fine) return;
    std::ostringstream message;
    message << "sampling: " << field << " is " << found << ", wanted " << expected;
    throw RequestError(message.str());
}

bool in_unit_interval(float x) { return x >= 0 && x <= 1; }

}  // namespace

void SamplingPolicy::validate() const {
    require(std::isfinite(temperature) && temperature >= 0, "temperature", temperature,
            "a finite number >= 0 (0 is greedy)");
    require(top_k >= 0, "top_k", top_k, "a count >= 0 (0 turns it off)");
    require(in_unit_interval(top_p), "top_p", top_p, "a number in [0, 1] (1 turns it off)");
    require(in_unit_interval(min_p), "min_p", min_p, "a number in [0, 1] (0 turns it off)");
    require(std::isfinite(repetition_penalty) && repetition_penalty > 0, "repetition_penalty", repetition_penalty,
            "a finite number > 0 (1 turns it off)");
    require(std::isfinite(presence_penalty), "presence_penalty", presence_penalty, "a finite number (0 turns it off)");
    require(std::isfinite(frequency_penalty), "frequency_penalty", frequency_penalty,
            "a finite number (0 turns it off)");
    require(penalty_last_n >= -1, "penalty_last_n", penalty_last_n, "a count >= 0, or -1 for the whole history");
    for (const auto& [token, bias] : logit_bias) {
        require(token >= 0, "a token of logit_bias", token, "an id >= 0");
        require(bias < std::numeric_limits<float>::infinity(), "a bias of logit_bias", bias,
                "a finite number, or -inf to ban the token");
    }
}

namespace sampling {

namespace {

void require_in_vocabulary(int32_t token, size_t n_vocab, const char* where) {
    if (token >= 0 && static_cast<size_t>(token) < n_vocab) return;
    throw RequestError("sampler: token " + std::to_string(token) + " in the " + where +
                       " is outside the vocabulary, wanted an id in [0, " + std::to_string(n_vocab) + ")");
}

std::span<const int32_t> recent(std::span<const int32_t> history, int32_t last_n) {
    if (last_n < 0 || static_cast<size_t>(last_n) >= history.size()) return history;
    return history.last(static_cast<size_t>(last_n));
}

float penalised(const SamplingPolicy& policy, float logit, int32_t count) {
    // Multiplying a negative logit lowers it, as dividing a positive one does.
    if (policy.repetition_penalty != 1.0f) {
        logit = logit > 0 ? logit / policy.repetition_penalty : logit * policy.repetition_penalty;
    }
    return logit - (static_cast<float>(count) * policy.frequency_penalty + policy.presence_penalty);
}

/// Applies bias and penalties to a row. `entry_of` returns the index of a token in the row, or the row's size when the
/// row does not list it. `counts` is scratch that is zero before and after.
template <typename EntryOf>
void adjust(const SamplingPolicy& policy, std::span<const int32_t> history, std::span<float> row,
            std::vector<int32_t>& counts, EntryOf entry_of) {
    const size_t none = row.size();
    for (const auto& [token, bias] : policy.logit_bias) {
        if (const size_t entry = entry_of(token); entry != none) row[entry] += bias;
    }
    if (!policy.penalises()) return;
    const auto tokens = recent(history, policy.penalty_last_n);
    counts.resize(row.size());
    for (const int32_t token : tokens) {
        if (const size_t entry = entry_of(token); entry != none) ++counts[entry];
    }
    for (const int32_t token : tokens) {
        const size_t entry = entry_of(token);
        if (entry == none || counts[entry] == 0) continue;
        row[entry] = penalised(policy, row[entry], counts[entry]);
        counts[entry] = 0;
    }
}

std::unordered_map<int32_t, size_t> entries_of(std::span<const int32_t> ids) {
    std::unordered_map<int32_t, size_t> entries;
    entries.reserve(ids.size());
    for (const int32_t token : ids) {
        if (entries.emplace(token, entries.size()).second) continue;
        throw RequestError("sampler: token " + std::to_string(token) +
                           " is among the candidates twice, wanted distinct ids");
    }
    return entries;
}

}  // namespace

void adjust_logits(const SamplingPolicy& policy, std::span<const int32_t> history, std::span<float> row,
                   std::vector<int32_t>& counts) {
    for (const auto& [token, bias] : policy.logit_bias) require_in_vocabulary(token, row.size(), "logit bias");
    if (policy.penalises()) {
        for (const int32_t token : recent(history, policy.penalty_last_n)) {
            require_in_vocabulary(token, row.size(), "history");
        }
    }
    adjust(policy, history, row, counts, [](int32_t token) { return static_cast<size_t>(token); });
}

void adjust_candidates(const SamplingPolicy& policy, std::span<const int32_t> history, std::span<const int32_t> ids,
                       std::span<float> row, std::vector<int32_t>& counts) {
    const auto entries = entries_of(ids);
    adjust(policy, history, row, counts, [&](int32_t token) {
        const auto found = entries.find(token);
        return found == entries.end() ? row.size() : found->second;
    });
}

}  // namespace sampling

}  // namespace ds4
