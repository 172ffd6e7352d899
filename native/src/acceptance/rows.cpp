#include "acceptance/rows.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "ds4/errors.h"

namespace ds4::speculation {

TargetRows::TargetRows(Sampler& sampler, std::span<const float> logits, std::span<const int32_t> proposals,
                       std::span<const int32_t> history)
    : sampler_(sampler), logits_(logits), vocab_(logits.size() / (proposals.size() + 1)), proposals_(proposals.size()) {
    // Most policies look at no history, which may be as long as the context.
    if (sampler.policy().penalises()) tokens_.assign(history.begin(), history.end());
    tokens_.insert(tokens_.end(), proposals.begin(), proposals.end());
}

std::span<const int32_t> TargetRows::seen(size_t row) const {
    return std::span(tokens_).first(tokens_.size() - proposals_ + row);
}

std::span<float> TargetRows::distribution(size_t row) { return sampler_.distribution(logits(row), seen(row)); }

int32_t TargetRows::sample(size_t row, Rng& rng) { return sampler_.sample(logits(row), seen(row), rng); }

double DraftRow::at(int32_t token) const {
    size_t entry = static_cast<size_t>(token);
    if (!ids.empty()) {
        entry = static_cast<size_t>(std::find(ids.begin(), ids.end(), token) - ids.begin());
        if (entry == ids.size()) {
            throw RequestError("accept: the proposal " + std::to_string(token) + " is not among the " +
                               std::to_string(ids.size()) + " ids of its q, wanted the list that it was drawn from");
        }
    }
    const float found = q[entry];
    if (std::isfinite(found) && found >= 0) return found;
    throw RequestError("accept: q of the proposal " + std::to_string(token) + " is " + std::to_string(found) +
                       ", wanted a probability; the drafter is damaged");
}

DraftRow draft_row(const Proposals& proposals, size_t i) {
    const size_t width = proposals.q.size() / proposals.tokens.size();
    const auto ids = proposals.ids.empty() ? proposals.ids : proposals.ids.subspan(i * width, width);
    return {proposals.q.subspan(i * width, width), ids};
}

}  // namespace ds4::speculation
