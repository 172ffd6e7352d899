#pragma once
// The sequential head of a draft (docs/dspark.md section 2.7): every position's logits get a low-rank bias from the
// token before, W2^T W1[token], and give the token that the next position goes by.

#include "ops/proposal.h"

namespace ds4::ops {

struct MarkovInput {
    ggml_tensor* base;       // [vocab, block]: logits without the bias
    ggml_tensor* anchor;     // [1] I32: the token before the first position
    ggml_tensor* embedding;  // W1 [rank, vocab]; null without a bias
    ggml_tensor* output;     // W2 [rank, vocab]; likewise
    int64_t draft_vocab;     // each position's candidates are so many, the likeliest by base; 0 is the whole vocabulary
    ProposalDraw* draw;      // draws the tokens, and is filled before every run; null takes the likeliest
};

struct MarkovChain {
    std::vector<ggml_tensor*> tokens;  // [1] I32 by position
    std::vector<ggml_tensor*> q;       // [candidates] by position; empty when nothing is drawn
    ggml_tensor* ids;                  // [draft_vocab, block] I32: the candidates; null for the whole vocabulary
    ggml_tensor* rows;                 // [rank, block]: W1 of the token before each position; null without a bias
};

/// Proposes the tokens of a block, one position after another.
MarkovChain markov_chain(const Build& b, const MarkovInput& in);

/// Implements ops::markov_chain by several ggml operations for each position.
namespace generic {
MarkovChain markov_chain(const Build& b, const MarkovInput& in);
}

/// Implements ops::markov_chain over a draft vocabulary in one node. Candidates are ascending, and of equal logits the
/// lowest id is the likeliest.
namespace cpu {
MarkovChain markov_chain(const Build& b, const MarkovInput& in);
}

}  // namespace ds4::ops
