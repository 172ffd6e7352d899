// Buckets, shapes and ring sizes (section 3.2).

#include <algorithm>
#include <set>
#include <tuple>

#include "check.h"
#include "ds4/errors.h"
#include "graph/shape.h"
#include "run_graph.h"
#include "state/state.h"

using ds4::graph::Logits;
using ds4::graph::Shape;
using ds4::graph::shape_of;
using ds4::state::bucket;

CASE(bucket_is_monotone_enough_and_small) {
    std::set<int64_t> values;
    CHECK(bucket(0) == 0);
    for (int64_t rows = 1; rows <= 1 << 18; rows++) {
        const int64_t b = bucket(rows);
        if (b < rows || b < bucket(rows - 1) || b - rows >= std::max<int64_t>(64, rows / 4 + 1)) {
            return CHECK(!"bucket() too small, not monotone, or more than a quarter too large");
        }
        CHECK(bucket(b) == b);
        values.insert(b);
    }
    CHECK(values.size() <= 48);
}

CASE(a_context_has_room_for_every_length_read) {
    for (int64_t context : {1, 3, 4, 127, 128, 1000, 4096, 100000}) {
        for (int64_t end = 1; end <= context; end += 1 + context / 500) {
            CHECK(bucket(end / 4) <= bucket(context / 4));
            CHECK(bucket(end / 128) <= bucket(context / 128));
        }
    }
}

CASE(ring_sizes) {
    ds4::model::Hyperparameters hp = test::small_target();
    for (int64_t window : {32, 128}) {
        hp.window = window;
        CHECK(ds4::state::raw_capacity(hp) >= window + ds4::state::kMaxRows - 1);
    }
    CHECK(ds4::state::carry_capacity(4) >= 7 + ds4::state::kMaxRows);
    CHECK(ds4::state::carry_capacity(128) >= 127 + ds4::state::kMaxRows);
}

CASE(state_tensors) {
    ds4::model::Hyperparameters hp = test::small_target();
    hp.layers = 3;
    hp.ratios = {0, ds4::model::kCsaRatio, ds4::model::kHcaRatio};
    constexpr int64_t context = 1000;
    ds4::state::State state(hp, context, GGML_TYPE_F16, ds4::state::same_buffer_type(test::cpu_buffers(), hp.layers));
    const auto& [plain, csa, hca] = std::tie(state.layers()[0], state.layers()[1], state.layers()[2]);
    CHECK(!plain.compressor.rows && !plain.indexer.rows && csa.indexer.rows && !hca.indexer.rows);
    CHECK(csa.raw->type == GGML_TYPE_F16 && csa.compressor.kv->type == GGML_TYPE_F32);
    CHECK(csa.compressor.kv->ne[0] == 2 * hp.head_size && hca.compressor.kv->ne[0] == hp.head_size);
    CHECK(csa.indexer.score->ne[0] == 2 * hp.index_size && csa.indexer.rows->ne[0] == hp.index_size);
    CHECK(csa.compressor.rows->ne[1] >= context / 4 && hca.compressor.rows->ne[1] >= context / 128);
    CHECK(state.rings().size() == 9 && state.compressed().size() == 3);
    for (const auto& [rows, ratio] : state.compressed())
        CHECK(ratio == (rows == hca.compressor.rows ? ds4::model::kHcaRatio : ds4::model::kCsaRatio));
    for (ggml_tensor* t : state.rings()) {
        for (float v : test::contents(t)) CHECK(v == 0);
    }
}

CASE(shape_counts_the_blocks_that_end_inside) {
    const ds4::model::Hyperparameters hp = test::small_target();
    for (int64_t position = 0; position < 260; position++) {
        for (int64_t rows : {1, 2, 3, 4, 5, 7, 16, 127, 128, 129, 300}) {
            const Shape s = shape_of(hp, position, rows, Logits::all);
            int64_t ends4 = 0, ends128 = 0;
            for (int64_t t = position; t < position + rows; t++) {
                ends4 += t % 4 == 3;
                ends128 += t % 128 == 127;
            }
            CHECK(s.rows == rows && s.csa_blocks == ends4 && s.hca_blocks == ends128);
            CHECK(s.csa_length >= (position + rows) / 4 && s.hca_length >= (position + rows) / 128);
        }
    }
}

CASE(shape_ignores_ratios_that_no_layer_has) {
    ds4::model::Hyperparameters hp = test::small_target();
    hp.ratios = {0, ds4::model::kCsaRatio};
    const Shape csa = shape_of(hp, 0, 300, Logits::last);
    CHECK(csa.csa_blocks == 75 && csa.csa_length >= 75 && csa.hca_blocks == 0 && csa.hca_length == 0);
    hp.ratios = {0, 0};
    CHECK(shape_of(hp, 0, 300, Logits::last).csa_length == 0);
}

CASE(chunks_shrink_with_length_but_never_to_nothing) {
    int64_t before = ds4::graph::chunk_rows(1);
    for (int64_t end = 1; end <= 1 << 21; end += 997) {
        const int64_t rows = ds4::graph::chunk_rows(end);
        CHECK(rows >= ds4::graph::kAttentionRows && rows <= before);
        before = rows;
    }
}

CASE(a_session_without_room_is_a_backend_error) {
    const ds4::model::Hyperparameters hp = test::small_target();
    REQUIRE_THROWS(ds4::BackendError, ds4::state::State(hp, int64_t{1} << 50, GGML_TYPE_F32,
                                                        ds4::state::same_buffer_type(test::cpu_buffers(), hp.layers)));
}
