#include <cmath>
#include <numeric>
#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

void choose(ggml_tensor* out, int ith, int nth, void*) {
    const ggml_tensor* scores = out->src[0];
    const Part part(scores->ne[1], ith, nth);
    for (int64_t i = part.first; i < part.last; i++) {
        greatest(row(scores, i), scores->ne[0], row<int32_t>(out, i), out->ne[0]);
    }
}

}  // namespace

void greatest(const float* row, int64_t count, int32_t* chosen, int64_t wanted) {
    thread_local std::vector<int32_t> order;
    order.resize(count);
    std::iota(order.begin(), order.end(), 0);
    const auto value = [row](int32_t k) { return std::isnan(row[k]) ? -INFINITY : row[k]; };  // NaN has no order
    const auto above = [value](int32_t a, int32_t b) { return value(a) > value(b) || (value(a) == value(b) && a < b); };
    std::nth_element(order.begin(), order.begin() + wanted - 1, order.end(), above);
    std::partial_sort_copy(order.begin(), order.begin() + wanted, chosen, chosen + wanted);
}

ggml_tensor* top_rows(const Build& b, ggml_tensor* scores, int64_t count) {
    return node(b, GGML_TYPE_I32, {count, scores->ne[1]}, {scores}, choose);
}

}  // namespace ds4::ops::cpu
