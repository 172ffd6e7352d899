#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

void choose(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor* scores = out->src[0];
    const Part part(scores->ne[1], ith, nth);
    thread_local std::vector<int32_t> order;
    order.resize(scores->ne[0]);
    for (int64_t i = part.first; i < part.last; i++) {
        const auto* row = reinterpret_cast<const float*>(static_cast<const char*>(scores->data) + i * scores->nb[1]);
        std::iota(order.begin(), order.end(), 0);
        const auto value = [row](int32_t k) { return std::isnan(row[k]) ? -INFINITY : row[k]; };  // NaN has no order
        const auto above = [value](int32_t a, int32_t b) {
            return value(a) > value(b) || (value(a) == value(b) && a < b);
        };
        std::nth_element(order.begin(), order.begin() + out->ne[0] - 1, order.end(), above);
        auto* chosen = reinterpret_cast<int32_t*>(static_cast<char*>(out->data) + i * out->nb[1]);
        std::partial_sort_copy(order.begin(), order.begin() + out->ne[0], chosen, chosen + out->ne[0]);
    }
}

}  // namespace

ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count) {
    return ggml_custom_4d(b.ctx, GGML_TYPE_I32, count, scores->ne[1], 1, 1, &scores, 1, choose, GGML_N_TASKS_MAX,
                          nullptr);
}

}  // namespace ds4::ops::cpu
