#include "graph/markov.h"

#include "graph/blocks.h"

namespace ds4::graph {
namespace {

/// What the positions choose from: the whole vocabulary, or the shortlist of the likeliest by base logits.
struct Candidates {
    ggml_tensor* logits;         // [width, block]
    ggml_tensor* ids = nullptr;  // [width, block] I32; null for the whole vocabulary
    ggml_tensor* rows;           // W2 [rank, vocab], or its listed rows [rank, width, block] F32; null without a bias
};

Candidates shortlist(const ops::Build& b, ggml_tensor* base, ggml_tensor* markov, int64_t width) {
    ggml_context* ctx = b.ctx;
    const int64_t vocab = base->ne[0], block = base->ne[1];
    if (width == 0 || width >= vocab) return {base, nullptr, markov};
    ggml_tensor* ids = ggml_top_k(ctx, base, static_cast<int>(width));
    ggml_tensor* logits = ggml_get_rows(ctx, ggml_reshape_3d(ctx, base, 1, vocab, block), ids);
    Candidates c{ggml_reshape_2d(ctx, logits, width, block), ids, nullptr};
    if (!markov) return c;
    ggml_tensor* rows = ggml_get_rows(ctx, markov, ggml_reshape_1d(ctx, ids, width * block));
    c.rows = ggml_reshape_3d(ctx, rows, markov->ne[0], width, block);
    return c;
}

/// Logits of position j after the token whose Markov row is e [rank, 1]: [width].
ggml_tensor* biased(const ops::Build& b, const Candidates& c, ggml_tensor* e, int64_t j) {
    ggml_tensor* logits = cut(b.ctx, c.logits, 1, j, 1);
    if (!e) return logits;
    ggml_tensor* rows = c.ids ? cut(b.ctx, c.rows, 2, j, 1) : c.rows;
    return ggml_add(b.ctx, logits, ggml_mul_mat(b.ctx, rows, e));
}

/// The likeliest candidate: [1] I32.
ggml_tensor* likeliest(const ops::Build& b, ggml_tensor* z, ggml_tensor* ids) {
    ggml_tensor* best = ggml_argmax(b.ctx, z);
    if (!ids) return best;
    return ggml_reshape_1d(b.ctx, ggml_get_rows(b.ctx, ggml_reshape_2d(b.ctx, ids, 1, ids->ne[0]), best), 1);
}

/// c [1, block] from the hidden rows and, where the head wants them, the Markov rows of the tokens before.
ggml_tensor* confidences(const ops::Build& b, const drafter::Weights& w, ggml_tensor* hidden, ggml_tensor* markov) {
    ggml_tensor* features = markov ? ggml_concat(b.ctx, hidden, markov, 0) : hidden;
    ggml_tensor* logits = ggml_mul_mat(b.ctx, w.confidence, features);
    if (w.confidence_bias) logits = ggml_add(b.ctx, logits, w.confidence_bias);
    return ggml_sigmoid(b.ctx, logits);
}

void keep(const ops::Build& b, ggml_tensor* t) {
    ggml_set_output(t);
    b.now(t);
}

}  // namespace

void markov_chain(const ops::Build& b, const DraftSource& source, const DraftShape& shape, ggml_tensor* anchor,
                  Draft& draft) {
    const drafter::Weights& w = source.drafter.weights();
    const drafter::Hyperparameters& hp = source.drafter.hyperparameters();
    const Candidates c = shortlist(b, draft.base, w.markov_output, shape.shortlist);
    draft.candidates = c.ids;
    ggml_tensor *previous = anchor, *markov = nullptr;
    for (int64_t j = 0; j < hp.block; j++) {
        ggml_tensor* e = hp.rank ? ggml_get_rows(b.ctx, w.markov_embedding, previous) : nullptr;
        if (e) markov = markov ? ggml_concat(b.ctx, markov, e, 1) : e;
        ggml_tensor* z = biased(b, c, e, j);
        ggml_tensor* ids = c.ids ? cut(b.ctx, c.ids, 1, j, 1) : nullptr;
        if (shape.sampled) draft.q.push_back(ops::proposal_distribution(b, z, ids, source.draw));
        previous = shape.sampled ? ops::proposal_token(b, draft.q.back(), ids, source.draw) : likeliest(b, z, ids);
        draft.tokens.push_back(previous);
        keep(b, previous);
        if (shape.sampled) keep(b, draft.q.back());
    }
    if (c.ids) keep(b, c.ids);
    if (!hp.confidence) return;
    draft.confidence = confidences(b, w, draft.hidden, hp.confidence_markov ? markov : nullptr);
    keep(b, draft.confidence);
}

}  // namespace ds4::graph
