// Nodes of packed weights against ggml's products of the same weights.

#include "check.h"
#include "packed_weights.h"

using test::Graph;
using test::PackedWeights;

namespace {

void check_same(const std::vector<float>& found, const std::vector<float>& wanted) {
    CHECK(found.size() == wanted.size());
    for (size_t i = 0; i < wanted.size(); i++) CHECK_CLOSE(found[i], wanted[i], 1e-4);
}

}  // namespace

CASE(a_packed_product_is_ggmls) {
    PackedWeights w(50, 37, 1, true);
    for (int64_t n : {1, 2, 7}) {
        const std::vector<float> x = test::noise(50 * n, 2);
        Graph one, other;
        check_same(one.run(ds4::ops::matmul(one.b, w.packed, one.floats(x, {50, n}))),
                   other.run(ds4::ops::matmul(other.b, w.plain, other.floats(x, {50, n}))));
    }
}

CASE(a_packed_grouped_product_is_ggmls) {
    PackedWeights w(32, 20, 3, true);
    for (int64_t n : {1, 5}) {
        const std::vector<float> x = test::noise(32 * 3 * n, 2);
        Graph one, other;
        check_same(one.run(ds4::ops::grouped_matmul(one.b, w.packed, one.floats(x, {32, 3, n}))),
                   other.run(ds4::ops::grouped_matmul(other.b, w.plain, other.floats(x, {32, 3, n}))));
    }
}

CASE(a_packed_expert_product_is_ggmls) {
    PackedWeights w(32, 24, 5, false);
    const std::vector<int32_t> chosen{0, 3, 3, 1, 4, 0, 1, 3};  // expert 2 by nobody
    for (int64_t inputs : {1, 2}) {                             // one row for both choices of a token, or one for each
        const std::vector<float> x = test::noise(32 * inputs * 4, 2);
        Graph one, other;
        check_same(
            one.run(ds4::ops::expert_matmul(one.b, w.packed, one.floats(x, {32, inputs, 4}), one.ints(chosen, {2, 4}))),
            other.run(ds4::ops::expert_matmul(other.b, w.plain, other.floats(x, {32, inputs, 4}),
                                              other.ints(chosen, {2, 4}))));
    }
}
