#include "graph/features.h"

namespace ds4::graph {

ggml_tensor* stream_mean(const ops::Build& b, ggml_tensor* x) {
    const int64_t streams = x->ne[1];
    ggml_tensor* sum = nullptr;
    for (int64_t m = 0; m < streams; m++) {
        ggml_tensor* one = ggml_view_2d(b.ctx, x, x->ne[0], x->ne[2], x->nb[2], m * x->nb[1]);
        sum = sum ? ggml_add(b.ctx, sum, one) : one;
    }
    return ggml_scale(b.ctx, sum, 1.0f / static_cast<float>(streams));
}

void keep_features(const ops::Build& b, const std::vector<ggml_tensor*>& tapped, ggml_tensor* ring,
                   ggml_tensor* slots) {
    ggml_tensor* all = tapped.front();
    for (size_t i = 1; i < tapped.size(); i++) all = ggml_concat(b.ctx, all, tapped[i], 0);
    b.expanded(ggml_set_rows(b.ctx, ring, all, slots));
}

}  // namespace ds4::graph
