#include <cmath>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// A query in the layout that the kernels read.
class Query {
   public:
    void set(const ggml_tensor* q, const ggml_tensor* weights, int64_t i) {
        const int64_t size = q->ne[0], heads = q->ne[1], filled = kernels::tiles(heads) * kernels::kTile;
        query_.assign(size * filled, 0), weights_.assign(filled, 0), scratch_.resize(2 * (size + filled));
        for (int64_t h = 0; h < heads; h++) {
            for (int64_t c = 0; c < size; c++) query_[c * filled + h] = row(q, h, i)[c];
        }
        std::copy_n(row(weights, i), heads, weights_.begin());
        size_ = size;
    }
    kernels::IndexQuery get() { return {query_.data(), weights_.data(), size_, std::ssize(weights_), scratch_.data()}; }

   private:
    std::vector<float> query_, weights_, scratch_;
    int64_t size_ = 0;
};

/// Scores of keys [first, last) for query i. What it sees comes in runs.
void score(ggml_tensor* out, Query& query, int64_t i, int64_t first, int64_t last) {
    const ggml_tensor *keys = out->src[1], *mask = out->src[3];
    const kernels::IndexKeys all{keys->data, keys->nb[1], keys->type == GGML_TYPE_F16};
    const auto hidden = [&](int64_t k) { return ggml_fp16_to_fp32(element<ggml_fp16_t>(mask, k, i)) < 0; };
    for (int64_t k = first, end; k < last; k = end) {
        const bool none = hidden(k);
        for (end = k + 1; end < last && hidden(end) == none;) end++;
        if (none) {
            std::fill(row<float>(out, i) + k, row<float>(out, i) + end, -INFINITY);
        } else {
            kernels().index_scores(query.get(), all, k, end, row<float>(out, i));
        }
    }
}

/// Keys of all queries are shared out in one sequence.
void score_keys(ggml_tensor* out, int ith, int nth, void*) {
    const int64_t count = out->ne[0], n = out->ne[1];
    const Part part(count * n, ith, nth);
    thread_local Query query;
    for (int64_t i = part.first / count; i < n && i * count < part.last; i++) {
        query.set(out->src[0], out->src[2], i);
        score(out, query, i, std::max<int64_t>(part.first - i * count, 0), std::min(part.last - i * count, count));
    }
}

}  // namespace

ggml_tensor* index_scores(const Build& b, ggml_tensor* q, ggml_tensor* keys, ggml_tensor* weights, ggml_tensor* mask) {
    return node(b, GGML_TYPE_F32, {keys->ne[1], q->ne[2]}, {q, keys, weights, mask}, score_keys);
}

}  // namespace ds4::ops::cpu
