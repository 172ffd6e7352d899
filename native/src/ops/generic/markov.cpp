#include "ops/markov.h"

namespace ds4::ops::generic {
namespace {

/// The tokens and logits that the positions choose from.
struct Candidates {
    ggml_tensor* logits;         // [width, block]
    ggml_tensor* ids = nullptr;  // [width, block] I32; null for the whole vocabulary
    ggml_tensor* rows;           // W2 [rank, vocab], or its listed rows [rank, width, block] F32; null without a bias
};

Candidates candidates(const Build& b, const MarkovInput& in) {
    ggml_context* ctx = b.ctx;
    const int64_t vocab = in.base->ne[0], block = in.base->ne[1], width = in.draft_vocab;
    if (width == 0) return {in.base, nullptr, in.output};
    ggml_tensor* ids = ggml_top_k(ctx, in.base, static_cast<int>(width));
    ggml_tensor* logits = ggml_get_rows(ctx, ggml_reshape_3d(ctx, in.base, 1, vocab, block), ids);
    Candidates c{ggml_reshape_2d(ctx, logits, width, block), ids, nullptr};
    if (!in.output) return c;
    ggml_tensor* rows = ggml_get_rows(ctx, in.output, ggml_reshape_1d(ctx, ids, width * block));
    c.rows = ggml_reshape_3d(ctx, rows, in.output->ne[0], width, block);
    return c;
}

ggml_tensor* row_of(const Build& b, ggml_tensor* x, int64_t j) {
    return ggml_view_1d(b.ctx, x, x->ne[0], j * x->nb[1]);
}

/// Logits of position j after the token whose Markov row is e [rank, 1]: [width].
ggml_tensor* biased(const Build& b, const Candidates& c, ggml_tensor* e, int64_t j) {
    ggml_tensor *logits = row_of(b, c.logits, j), *rows = c.rows;
    if (!e) return logits;
    if (c.ids) rows = ggml_view_2d(b.ctx, rows, rows->ne[0], rows->ne[1], rows->nb[1], j * rows->nb[2]);
    return ggml_add(b.ctx, logits, ggml_mul_mat(b.ctx, rows, e));
}

/// The likeliest candidate: [1] I32.
ggml_tensor* likeliest(const Build& b, ggml_tensor* z, ggml_tensor* ids) {
    ggml_tensor* best = ggml_argmax(b.ctx, z);
    if (!ids) return best;
    return ggml_reshape_1d(b.ctx, ggml_get_rows(b.ctx, ggml_reshape_2d(b.ctx, ids, 1, ids->ne[0]), best), 1);
}

}  // namespace

MarkovChain markov_chain(const Build& b, const MarkovInput& in) {
    const Candidates c = candidates(b, in);
    MarkovChain out{{}, {}, c.ids, nullptr};
    ggml_tensor* previous = in.anchor;
    for (int64_t j = 0; j < in.base->ne[1]; j++) {
        ggml_tensor* e = in.embedding ? ggml_get_rows(b.ctx, in.embedding, previous) : nullptr;
        if (e) out.rows = out.rows ? ggml_concat(b.ctx, out.rows, e, 1) : e;
        ggml_tensor *z = biased(b, c, e, j), *ids = c.ids ? row_of(b, c.ids, j) : nullptr;
        if (in.draw) out.q.push_back(proposal_distribution(b, z, ids, in.draw));
        previous = in.draw ? proposal_token(b, out.q.back(), ids, in.draw) : likeliest(b, z, ids);
        out.tokens.push_back(previous);
    }
    return out;
}

}  // namespace ds4::ops::generic
