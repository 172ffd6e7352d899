#pragma once
// Weights as ggml reads them, the same weights packed, and the numbers that both stand for.

#include <algorithm>
#include <vector>

#include "cpu/packed_tensor.h"
#include "cpu/packing.h"
#include "run_graph.h"

namespace test {

/// Random weights [columns, rows, count] of a type; flat: [columns, rows * count].
struct PackedWeights {
    Store store;
    ggml_tensor *plain, *packed, *exact;  // exact: F32
    ds4::kernels::PackedTensor shape;
    std::vector<std::byte> data;

    PackedWeights(int64_t columns, int64_t rows, int64_t count, bool flat, ggml_type type = GGML_TYPE_F32,
                  uint32_t seed = 1, float spread = 1) {
        const std::vector<float> values = noise(columns * rows * count, seed, spread);
        for (ggml_tensor** t : {&plain, &packed}) {
            *t = flat ? store.add(values, {columns, rows * count}, type)
                      : store.add(values, {columns, rows, count}, type);
        }
        std::vector<float> widened(values.size());
        const auto widen = ggml_get_type_traits(type)->to_float;  // null for F32
        if (widen) widen(plain->data, widened.data(), static_cast<int64_t>(widened.size()));
        exact = flat ? store.add(widen ? widened : values, {columns, rows * count})
                     : store.add(widen ? widened : values, {columns, rows, count});
        const auto format = *ds4::kernels::format_of(type);
        shape = {format, columns, rows, count, ds4::kernels::packed_bytes(format, columns, rows)};
        data.resize(shape.bytes * count);
        const int64_t tiles = ds4::kernels::tiles(rows);
        const size_t stride = ggml_row_size(type, columns);
        for (int64_t i = 0; i < tiles * count; i++) {
            const int64_t row = i % tiles * 16;
            ds4::kernels::pack_tile(format, static_cast<char*>(plain->data) + (i / tiles * rows + row) * stride, stride,
                                    std::min<int64_t>(16, rows - row), columns,
                                    data.data() + i * ds4::kernels::tile_bytes(format, columns));
        }
        packed->data = data.data();
        packed->extra = &shape;
    }
    PackedWeights(const PackedWeights&) = delete;
    PackedWeights& operator=(const PackedWeights&) = delete;

    enum class Form { plain, packed, exact };
    ggml_tensor* in(Form form) const { return form == Form::plain ? plain : form == Form::packed ? packed : exact; }
};

}  // namespace test
