#include <cmath>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// Heads of one piece of work; keys that are read for one are in the cache for the others.
constexpr int64_t kHeads = 4;

/// Collects the keys that query i sees: shared ones, then its own.
void visible_keys(const ggml_tensor* out, int64_t i, std::vector<const float*>& keys) {
    const ggml_tensor *shared = out->src[1], *mask = out->src[2], *own = out->src[4];
    keys.clear();
    const float* hidden = row(mask, i);
    for (int64_t k = 0; k < shared->ne[1]; k++) {
        if (hidden[k] == 0) keys.push_back(row(shared, k));
    }
    for (int64_t k = 0; own && k < own->ne[1]; k++) {
        if (hidden[shared->ne[1] + k] == 0) keys.push_back(row(own, k, i));
    }
}

/// Computes a thread's share of the groups of heads of all queries.
void attend(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor *q = out->src[0], *sinks = out->src[3];
    const int64_t size = q->ne[0], heads = q->ne[1], groups = (heads + kHeads - 1) / kHeads;
    const Part part(groups * q->ne[2], ith, nth);
    thread_local std::vector<const float*> keys;
    thread_local std::vector<float> scratch;
    for (int64_t i = part.first / groups; i < q->ne[2] && i * groups < part.last; i++) {
        visible_keys(out, i, keys);
        const int64_t first = std::max<int64_t>(part.first - i * groups, 0) * kHeads;
        const int64_t last = std::min(std::min(part.last - i * groups, groups) * kHeads, heads);
        scratch.resize((last - first) * keys.size());
        const kernels::AttentionQuery query{row(q, 0, i),
                                            keys.data(),
                                            size,
                                            std::ssize(keys),
                                            1 / std::sqrt(static_cast<float>(size)),
                                            static_cast<const float*>(sinks->data),
                                            scratch.data(),
                                            static_cast<float*>(out->data) + i * heads * size};
        kernels().attend(query, first, last);
    }
}

}  // namespace

ggml_tensor* attention(const Build& b, const AttentionInput& in) {
    ggml_tensor* q = in.q->nb[1] == in.q->ne[0] * sizeof(float) ? in.q : ggml_cont(b.ctx, in.q);
    return node(b, GGML_TYPE_F32, {q->ne[0], q->ne[1], q->ne[2]}, {q, in.shared, in.mask, in.sinks, in.selected},
                attend);
}

}  // namespace ds4::ops::cpu
