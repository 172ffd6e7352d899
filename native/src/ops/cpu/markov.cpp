#include "ops/markov.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "ops/cpu/draft_vocab.h"
#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

template <typename T>
std::span<T> row_of(const ggml_tensor* x, int64_t i) {
    return {row<T>(x, i), static_cast<size_t>(x->ne[0])};
}

/// The likeliest candidates of each position.
void choose(ggml_tensor* ids, int ith, int nth, void*) {
    const Part part(ids->ne[1], ith, nth);
    for (int64_t j = part.first; j < part.last; j++)
        likeliest_tokens(row_of<const float>(ids->src[0], j), row_of<int32_t>(ids, j));
}

/// Row i of a matrix of any type, as floats.
void widen(const ggml_tensor* matrix, int64_t i, std::span<float> out) {
    if (matrix->type == GGML_TYPE_F32) {
        std::ranges::copy(row_of<const float>(matrix, i), out.begin());
    } else {
        ggml_get_type_traits(matrix->type)->to_float(row<const void>(matrix, i), out.data(), std::ssize(out));
    }
}

/// Sixteen sums side by side, of every sixteenth product each.
float dot(const float* a, const float* b, int64_t count) {
    constexpr int64_t lanes = 16;
    std::array<float, lanes> sums{};
    const int64_t whole = count / lanes * lanes;
    for (int64_t i = 0; i < whole; i += lanes) {
        for (int64_t lane = 0; lane < lanes; lane++) sums[lane] += a[i + lane] * b[i + lane];
    }
    for (int64_t i = whole; i < count; i++) sums[i - whole] += a[i] * b[i];
    return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

/// The sources of a chain's node.
struct Chain {
    const ggml_tensor *base, *ids, *anchor, *embedding, *rows;  // rows: [rank, draft_vocab * block]

    explicit Chain(const ggml_tensor* node)
        : base(node->src[0]), ids(node->src[1]), anchor(node->src[2]), embedding(node->src[3]), rows(node->src[4]) {}

    int64_t block() const { return base->ne[1]; }
    std::span<const int32_t> candidates(int64_t j) const { return row_of<const int32_t>(ids, j); }

    /// Logits of position j's candidates after a token; they stay until the next call.
    std::span<const float> logits(int64_t j, int32_t previous) const {
        thread_local std::vector<float> z, e;
        const auto listed = candidates(j);
        const auto all = row_of<const float>(base, j);
        z.resize(listed.size());
        std::ranges::transform(listed, z.begin(), [&](int32_t id) { return all[id]; });
        if (!rows) return z;
        e.resize(embedding->ne[0]);
        widen(embedding, previous, e);
        for (size_t i = 0; i < z.size(); i++) {
            z[i] += dot(row(rows, j * ids->ne[0] + i), e.data(), std::ssize(e));
        }
        return z;
    }
};

/// The anchor, then the likeliest token of each position: [1 + block]. One thread, because each position waits for the
/// one before, and a draft_vocab is little work.
void take_likeliest(ggml_tensor* tokens, int ith, int, void*) {
    if (ith) return;
    const Chain chain(tokens);
    auto* token = row<int32_t>(tokens, 0);
    *token = *row<const int32_t>(chain.anchor, 0);
    for (int64_t j = 0; j < chain.block(); j++) {
        const auto z = chain.logits(j, *token);
        *++token = chain.candidates(j)[std::ranges::max_element(z) - z.begin()];
    }
}

/// q [draft_vocab, block]; the tokens drawn go to the history.
void draw_tokens(ggml_tensor* q, int ith, int, void*) {
    if (ith) return;
    const Chain chain(q);
    auto& draw = *options_of<ProposalDraw*>(q);
    draw.attempt([&] {
        for (int64_t j = 0; j < chain.block(); j++) {
            draw.distribution(chain.logits(j, draw.history.back()), chain.candidates(j), row_of<float>(q, j));
            draw.token(row_of<const float>(q, j), chain.candidates(j));
        }
    });
}

/// The end of the history, which is the anchor and the tokens drawn.
void copy_drawn(ggml_tensor* tokens, int ith, int, void*) {
    if (ith) return;
    const auto& draw = *options_of<ProposalDraw*>(tokens);
    const auto out = row_of<int32_t>(tokens, 0);
    std::ranges::fill(out, 0);  // after an error the rest of the graph still gathers by them
    if (!draw.error) std::copy(draw.history.end() - std::ssize(out), draw.history.end(), out.begin());
}

/// The listed rows of W2, widened: [rank, draft_vocab * block].
ggml_tensor* listed_rows(const Build& b, ggml_tensor* w, ggml_tensor* ids) {
    return w ? ggml_get_rows(b.ctx, w, ggml_reshape_1d(b.ctx, ids, ggml_nelements(ids))) : nullptr;
}

ggml_tensor* part_of(const Build& b, ggml_tensor* x, int64_t first, int64_t count) {
    return ggml_view_1d(b.ctx, x, count, first * ggml_type_size(x->type));
}

}  // namespace

MarkovChain markov_chain(const Build& b, const MarkovInput& in) {
    const int64_t width = in.draft_vocab, block = in.base->ne[1];
    MarkovChain out{};
    out.ids = node(b, GGML_TYPE_I32, {width, block}, {in.base}, choose);
    const auto chain = [&](ggml_type type, std::initializer_list<int64_t> shape, ggml_custom_op_t run) {
        return node(b, type, shape, {in.base, out.ids, in.anchor, in.embedding, listed_rows(b, in.output, out.ids)},
                    run, in.draw);
    };
    ggml_tensor* q = in.draw ? chain(GGML_TYPE_F32, {width, block}, draw_tokens) : nullptr;
    ggml_tensor* tokens = q ? node(b, GGML_TYPE_I32, {1 + block}, {q}, copy_drawn, in.draw)
                            : chain(GGML_TYPE_I32, {1 + block}, take_likeliest);
    for (int64_t j = 0; j < block; j++) {
        out.tokens.push_back(part_of(b, tokens, 1 + j, 1));
        if (q) out.q.push_back(part_of(b, q, j * width, width));
    }
    if (in.embedding) out.rows = ggml_get_rows(b.ctx, in.embedding, part_of(b, tokens, 0, block));
    return out;
}

}  // namespace ds4::ops::cpu
