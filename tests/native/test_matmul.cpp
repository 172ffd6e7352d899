// Products of packed weights: every format on every processor's kernels that this one runs.

#include <cmath>
#include <cstring>
#include <random>

#include "check.h"
#include "cpu/kernels.h"
#include "cpu/packing.h"

using namespace ds4::kernels;

namespace {

constexpr ggml_type kTypes[] = {GGML_TYPE_F32,  GGML_TYPE_F16,   GGML_TYPE_BF16,    GGML_TYPE_Q8_0,
                                GGML_TYPE_Q4_0, GGML_TYPE_MXFP4, GGML_TYPE_Q2_K,    GGML_TYPE_Q4_K,
                                GGML_TYPE_Q5_K, GGML_TYPE_Q6_K,  GGML_TYPE_IQ2_XXS, GGML_TYPE_IQ3_XXS};

std::vector<float> normal(size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<float> out(count);
    for (float& x : out) x = draw(random);
    return out;
}

/// A random matrix as ggml stores it, what its bytes stand for, and packed.
struct Weights {
    ggml_type type;
    int64_t columns, rows;
    std::vector<float> values;
    std::vector<std::byte> packed;

    Weights(ggml_type t, int64_t c, int64_t r) : type(t), columns(c), rows(r), values(normal(c * r, 1)) {
        const size_t stride = ggml_row_size(type, columns);
        std::vector<std::byte> stored(stride * rows);
        const std::vector<float> importance(columns, 1.0F);
        ggml_quantize_chunk(type, values.data(), stored.data(), 0, rows, columns, importance.data());
        if (type != GGML_TYPE_F32) {
            ggml_get_type_traits(type)->to_float(stored.data(), values.data(), columns * rows);
        }
        packed.resize(packed_bytes(format(), columns, rows));
        for (int64_t tile = 0; tile < tiles(rows); tile++) {
            pack_tile(format(), stored.data() + tile * kTile * stride, stride, std::min(kTile, rows - tile * kTile),
                      columns, packed.data() + tile * tile_bytes(format(), columns));
        }
    }

    Format format() const { return *format_of(type); }
    Matrix matrix() const { return {format(), columns, rows, packed.data()}; }
};

/// Rows as a product reads them, and what they stand for.
struct Inputs {
    size_t stride;
    int64_t count;
    std::vector<std::byte> data;
    std::vector<double> values;

    Inputs(const Kernels& kernels, Format format, int64_t columns, const std::vector<float>& x) {
        const bool quantised = takes_quantised(format);
        stride = quantised ? quantised_bytes(columns) : columns * sizeof(float);
        count = static_cast<int64_t>(x.size()) / columns;
        data.resize(stride * count);
        values.assign(x.begin(), x.end());
        for (int64_t row = 0; row < count; row++) {
            std::byte* at = data.data() + row * stride;
            if (!quantised) {
                std::memcpy(at, x.data() + row * columns, stride);
                continue;
            }
            kernels.quantise(x.data() + row * columns, columns, at);
            const auto* q = reinterpret_cast<const int8_t*>(at);
            const auto* d = reinterpret_cast<const float*>(q + columns);
            for (int64_t k = 0; k < columns; k++) values[row * columns + k] = static_cast<double>(q[k]) * d[k / 32];
        }
    }

    Rows rows(int64_t first, int64_t n) const { return {data.data() + first * stride, stride, n}; }
};

std::vector<float> multiplied(const Kernels& kernels, const Weights& w, const Inputs& in) {
    std::vector<float> out(in.count * w.rows);
    kernels.matmul(w.matrix(), in.rows(0, in.count), 0, tiles(w.rows), {out.data(), w.rows});
    return out;
}

/// Relative error of all outputs against sums in double precision.
double error(const Weights& w, const Inputs& in, const std::vector<float>& found) {
    double difference = 0, size = 0;
    for (int64_t r = 0; r < in.count; r++) {
        for (int64_t i = 0; i < w.rows; i++) {
            double sum = 0;
            for (int64_t k = 0; k < w.columns; k++) sum += in.values[r * w.columns + k] * w.values[i * w.columns + k];
            difference += std::pow(found[r * w.rows + i] - sum, 2);
            size += sum * sum;
        }
    }
    return std::sqrt(difference / size);
}

template <typename F>
void for_all(const F& f) {
    for (const Kernels* kernels : available()) {
        for (ggml_type type : kTypes) f(*kernels, type);
    }
}

}  // namespace

CASE(products_equal_sums_in_double_precision) {
    for_all([](const Kernels& kernels, ggml_type type) {
        const Weights w(type, 768, 40);
        const Inputs in(kernels, w.format(), 768, normal(768 * 5, 2));
        CHECK(error(w, in, multiplied(kernels, w, in)) < 4e-7);
    });
}

CASE(products_of_columns_that_fill_no_group) {
    for (const Kernels* kernels : available()) {
        for (ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16}) {
            const Weights w(type, 37, 3);
            const Inputs in(*kernels, w.format(), 37, normal(37 * 2, 2));
            CHECK(error(w, in, multiplied(*kernels, w, in)) < 4e-7);
        }
        const Weights w(GGML_TYPE_Q8_0, 96, 17);
        const Inputs in(*kernels, w.format(), 96, normal(96 * 2, 2));
        CHECK(error(w, in, multiplied(*kernels, w, in)) < 4e-7);
    }
}

/// A row's bits depend neither on the rows beside it nor on who computes which tiles.
CASE(products_are_the_same_in_any_company) {
    for_all([](const Kernels& kernels, ggml_type type) {
        const Weights w(type, 512, 40);
        const Inputs in(kernels, w.format(), 512, normal(512 * 33, 3));
        const std::vector<float> together = multiplied(kernels, w, in);
        for (int64_t count : {1, 2, 3, 4, 5, 6, 7, 11, 16}) {
            std::vector<float> apart(together.size());
            for (int64_t first = 0; first < in.count; first += count) {
                for (int64_t tile = tiles(w.rows) - 1; tile >= 0; tile--) {
                    kernels.matmul(w.matrix(), in.rows(first, std::min(count, in.count - first)), tile, tile + 1,
                                   {apart.data() + first * w.rows, w.rows});
                }
            }
            CHECK(std::memcmp(apart.data(), together.data(), together.size() * sizeof(float)) == 0);
        }
    });
}

CASE(products_write_only_their_rows) {
    for_all([](const Kernels& kernels, ggml_type type) {
        const Weights w(type, 256, 20);
        const Inputs in(kernels, w.format(), 256, normal(256, 4));
        std::vector<float> out(24, 7.0F);
        kernels.matmul(w.matrix(), in.rows(0, 1), 0, 2, {out.data(), 20});
        for (size_t i = 20; i < out.size(); i++) CHECK(out[i] == 7.0F);
    });
}

CASE(quantised_rows_are_near_and_have_the_right_sums) {
    for (const Kernels* kernels : available()) {
        std::vector<float> x = normal(128, 5);
        std::fill_n(x.begin(), 32, 0.0F);
        x[40] = 1000;
        x[70] = 1e-38F;
        const Inputs in(*kernels, Format::q8_0, 128, x);
        const auto* q = reinterpret_cast<const int8_t*>(in.data.data());
        const auto* sums = reinterpret_cast<const int32_t*>(q + 128 + 4 * 4);
        for (int i = 0; i < 128; i++) {
            float most = 0;
            for (int j = i / 32 * 32; j < i / 32 * 32 + 32; j++) most = std::max(most, std::fabs(x[j]));
            CHECK_CLOSE(in.values[i], x[i], most / 127 * 0.5001);
        }
        for (int half = 0; half < 8; half++) {
            int32_t sum = 0;
            for (int i = 0; i < 16; i++) sum += q[16 * half + i];
            CHECK(sums[half] == sum);
        }
    }
}

CASE(not_a_number_stays_one) {
    for_all([](const Kernels& kernels, ggml_type type) {
        const Weights w(type, 256, 16);
        std::vector<float> x = normal(512, 6);
        x[300] = NAN;
        const Inputs in(kernels, w.format(), 256, x);
        const std::vector<float> out = multiplied(kernels, w, in);
        for (int i = 0; i < 16; i++) {
            CHECK(std::isfinite(out[i]));
            CHECK(std::isnan(out[16 + i]));
        }
    });
}
