#include <algorithm>
#include <cmath>
#include <string>

#include "ds4/errors.h"
#include "ds4/sampling.h"
#include "sampling/radix_select.h"
#include "sampling/softmax.h"

namespace ds4 {
namespace {

/// Returns the logarithm of the sum of the exponentials of a row. `weights` is scratch.
double log_sum(std::span<const float> row, std::vector<float>& weights) {
    const float max = sampling::checked_max(row);
    weights.resize(row.size());
    sampling::exponentiate(row, max, 1.0f, weights);
    return max + std::log(sampling::sum(weights));
}

/// Returns the ids of the `count` largest logits in descending order, the lowest ids first among equals.
std::vector<int32_t> largest(std::span<const float> row, size_t count, std::vector<uint32_t>& scratch) {
    std::vector<int32_t> ids;
    if (count == 0) return ids;
    const auto [limit, ties] = sampling::cut_at_count(row, count, scratch);
    size_t left = ties;
    for (size_t i = 0; i < row.size(); i++) {
        if (row[i] > limit || (row[i] == limit && left > 0 && left--)) ids.push_back(static_cast<int32_t>(i));
    }
    std::ranges::stable_sort(ids, [&](int32_t a, int32_t b) { return row[a] > row[b]; });
    return ids;
}

void check(std::span<const float> logits, std::span<const int32_t> tokens, size_t vocab, int64_t top) {
    if (tokens.empty() || logits.size() < tokens.size() * vocab || vocab == 0) {
        throw RequestError("logprobs: " + std::to_string(logits.size()) + " logits for " +
                           std::to_string(tokens.size()) + " tokens, wanted a row of " + std::to_string(vocab) +
                           " for each");
    }
    if (top < 0 || top > static_cast<int64_t>(vocab)) {
        throw RequestError("logprobs: " + std::to_string(top) + " alternatives, wanted 0 to the vocabulary of " +
                           std::to_string(vocab));
    }
    for (const int32_t token : tokens) {
        if (token >= 0 && token < static_cast<int64_t>(vocab)) continue;
        throw RequestError("logprobs: token " + std::to_string(token) + " is not in the vocabulary of " +
                           std::to_string(vocab));
    }
}

}  // namespace

std::vector<TokenLogprobs> logprobs(std::span<const float> logits, size_t vocab, std::span<const int32_t> tokens,
                                    int64_t top) {
    check(logits, tokens, vocab, top);
    std::vector<TokenLogprobs> out;
    std::vector<float> weights;
    std::vector<uint32_t> scratch;
    for (size_t i = 0; i < tokens.size(); i++) {
        const auto row = logits.subspan(i * vocab, vocab);
        const double total = log_sum(row, weights);
        const auto of = [&](int32_t token) { return row[token] - total; };
        TokenLogprobs& found = out.emplace_back(tokens[i], of(tokens[i]));
        for (const int32_t id : largest(row, static_cast<size_t>(top), scratch)) found.top.emplace_back(id, of(id));
    }
    return out;
}

}  // namespace ds4
