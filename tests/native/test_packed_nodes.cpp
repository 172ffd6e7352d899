// Nodes of packed weights against ggml's products of the same weights.

#include <cstring>
#include <numeric>

#include "check.h"
#include "cpu/packed_tensor.h"
#include "cpu/packing.h"
#include "run_graph.h"

using test::Graph;

namespace {

/// F32 weights [columns, rows, count], plain and packed.
struct Twin {
    test::Store store;
    ggml_tensor *plain, *packed;
    ds4::kernels::PackedTensor shape;
    std::vector<std::byte> data;

    Twin(int64_t columns, int64_t rows, int64_t count, bool flat) {
        const std::vector<float> values = test::noise(columns * rows * count, 1);
        plain = flat ? store.add(values, {columns, rows * count}) : store.add(values, {columns, rows, count});
        packed = flat ? store.add(values, {columns, rows * count}) : store.add(values, {columns, rows, count});
        const auto format = ds4::kernels::Format::f32;
        shape = {format, columns, rows, count, ds4::kernels::packed_bytes(format, columns, rows)};
        data.resize(shape.bytes * count);
        const int64_t tiles = ds4::kernels::tiles(rows);
        for (int64_t i = 0; i < tiles * count; i++) {
            const int64_t row = i % tiles * 16;
            ds4::kernels::pack_tile(format, values.data() + (i / tiles * rows + row) * columns, columns * 4,
                                    std::min<int64_t>(16, rows - row), columns,
                                    data.data() + i * ds4::kernels::tile_bytes(format, columns));
        }
        packed->data = data.data();
        packed->extra = &shape;
    }
};

void check_same(const std::vector<float>& found, const std::vector<float>& wanted) {
    CHECK(found.size() == wanted.size());
    for (size_t i = 0; i < wanted.size(); i++) CHECK_CLOSE(found[i], wanted[i], 1e-4);
}

}  // namespace

CASE(a_packed_product_is_ggmls) {
    Twin w(50, 37, 1, true);
    for (int64_t n : {1, 2, 7}) {
        const std::vector<float> x = test::noise(50 * n, 2);
        Graph one, other;
        check_same(one.run(ds4::ops::product(one.b, w.packed, one.floats(x, {50, n}))),
                   other.run(ds4::ops::product(other.b, w.plain, other.floats(x, {50, n}))));
    }
}

CASE(a_packed_grouped_product_is_ggmls) {
    Twin w(32, 20, 3, true);
    for (int64_t n : {1, 5}) {
        const std::vector<float> x = test::noise(32 * 3 * n, 2);
        Graph one, other;
        check_same(one.run(ds4::ops::grouped_product(one.b, w.packed, one.floats(x, {32, 3, n}))),
                   other.run(ds4::ops::grouped_product(other.b, w.plain, other.floats(x, {32, 3, n}))));
    }
}

CASE(a_packed_expert_product_is_ggmls) {
    Twin w(32, 24, 5, false);
    const std::vector<int32_t> chosen{0, 3, 3, 1, 4, 0, 1, 3};  // expert 2 by nobody
    for (int64_t inputs : {1, 2}) {                             // one row for both choices of a token, or one for each
        const std::vector<float> x = test::noise(32 * inputs * 4, 2);
        Graph one, other;
        check_same(one.run(ds4::ops::expert_product(one.b, w.packed, one.floats(x, {32, inputs, 4}),
                                                    one.ints(chosen, {2, 4}))),
                   other.run(ds4::ops::expert_product(other.b, w.plain, other.floats(x, {32, inputs, 4}),
                                                      other.ints(chosen, {2, 4}))));
    }
}
