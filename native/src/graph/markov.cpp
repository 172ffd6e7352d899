#include "graph/markov.h"

#include "drafter/weights.h"
#include "ops/markov.h"

namespace ds4::graph {
namespace {

/// c [1, block] from the hidden rows and, where the head wants them, the Markov rows of the tokens before.
ggml_tensor* confidences(const ops::Build& b, const drafter::Weights& w, ggml_tensor* hidden, ggml_tensor* markov) {
    ggml_tensor* features = markov ? ggml_concat(b.ctx, hidden, markov, 0) : hidden;
    ggml_tensor* logits = ggml_mul_mat(b.ctx, w.confidence, features);
    if (w.confidence_bias) logits = ggml_add(b.ctx, logits, w.confidence_bias);
    return ggml_sigmoid(b.ctx, logits);
}

}  // namespace

void keep(const ops::Build& b, ggml_tensor* t) {
    for (ggml_tensor* whole = t; whole; whole = whole->view_src) ggml_set_output(whole);
    b.expanded(t);
}

void markov_chain(const ops::Build& b, const DraftSource& source, const DraftShape& shape, ggml_tensor* anchor,
                  Draft& draft) {
    const drafter::Weights& w = source.drafter.weights();
    const drafter::Hyperparameters& hp = source.drafter.hyperparameters();
    const int64_t draft_vocab = shape.draft_vocab < draft.base->ne[0] ? shape.draft_vocab : 0;
    const ops::MarkovChain chain = ops::markov_chain(b, {draft.base, anchor, w.markov_embedding, w.markov_output,
                                                         draft_vocab, shape.sampled ? source.draw : nullptr});
    draft.candidates = chain.ids;
    draft.tokens = chain.tokens;
    draft.q = chain.q;
    for (ggml_tensor* t : draft.q) keep(b, t);
    for (ggml_tensor* t : draft.tokens) keep(b, t);
    if (chain.ids) keep(b, chain.ids);
    if (!hp.confidence) return;
    draft.confidence = confidences(b, w, draft.hidden, hp.confidence_markov ? chain.rows : nullptr);
    keep(b, draft.confidence);
}

}  // namespace ds4::graph
