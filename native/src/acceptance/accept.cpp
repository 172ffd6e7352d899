#include <string>

#include "acceptance/rows.h"
#include "acceptance/rules.h"
#include "ds4/errors.h"

namespace ds4 {

namespace {

std::string count(size_t n, const char* what) { return std::to_string(n) + " " + what; }

void require_in_vocabulary(std::span<const int32_t> tokens, size_t vocab, const char* what) {
    for (const int32_t token : tokens) {
        if (token >= 0 && static_cast<size_t>(token) < vocab) continue;
        throw RequestError("accept: token " + std::to_string(token) + " among the " + what +
                           " is outside the vocabulary, wanted an id in [0, " + std::to_string(vocab) + ")");
    }
}

/// The vocabulary's size.
size_t checked_vocab(size_t logits, size_t k) {
    const size_t vocab = logits / (k + 1);
    if (vocab > 0 && vocab * (k + 1) == logits) return vocab;
    throw RequestError("accept: " + count(logits, "logits for ") + count(k, "proposals, wanted ") +
                       count(k + 1, "rows of the vocabulary"));
}

void check_q(const Proposals& proposals, size_t vocab) {
    const size_t k = proposals.tokens.size();
    const bool dense = proposals.ids.empty();
    const size_t wanted = dense ? k * vocab : proposals.ids.size();
    const bool whole_rows = k == 0 ? wanted == 0 : wanted % k == 0;
    if (proposals.q.size() != wanted || !whole_rows) {
        throw RequestError("accept: " + count(proposals.q.size(), "values of q for ") + count(k, "proposals over ") +
                           (dense ? count(vocab, "tokens, wanted one for each token, or the ids they belong to")
                                  : count(wanted, "ids, wanted one for each id and rows of one width")));
    }
    require_in_vocabulary(proposals.ids, vocab, "ids of q");
}

}  // namespace

AcceptResult accept(Acceptance rule, Sampler& sampler, std::span<const float> logits, const Proposals& proposals,
                    std::span<const int32_t> history, Rng& rng) {
    const size_t k = proposals.tokens.size();
    const size_t vocab = checked_vocab(logits.size(), k);
    require_in_vocabulary(proposals.tokens, vocab, "proposals");
    // Every rule comes to matching where nothing is drawn or nothing is proposed.
    if (sampler.policy().greedy() || k == 0) rule = Acceptance::match;
    if (rule != Acceptance::match || !proposals.q.empty()) check_q(proposals, vocab);
    speculation::TargetRows rows(sampler, logits, proposals.tokens, history);
    switch (rule) {
        case Acceptance::token:
            return speculation::by_token(rows, proposals, rng);
        case Acceptance::match:
            return speculation::by_match(rows, proposals, rng);
        case Acceptance::block:
            return speculation::by_block(rows, proposals, rng);
    }
    throw RequestError("accept: rule " + std::to_string(static_cast<int>(rule)) + " is none of token, match, block");
}

}  // namespace ds4
