// Rings and masks as fill_inputs fills them, against a shadow of the rings: which position each slot holds.

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "check.h"
#include "ggml-cpp.h"
#include "graph/inputs.h"
#include "run_graph.h"
#include "state/state.h"

using ds4::graph::Inputs;
using ds4::graph::Logits;
using ds4::graph::QueryBlock;
using ds4::graph::RatioInputs;
using ds4::graph::Shape;

namespace {

const ds4::model::Hyperparameters kTarget = test::small_target();

/// The inputs of a forward with memory of their own, filled.
struct Filled {
    ggml_context_ptr ctx;
    ggml_backend_buffer_ptr buffer;
    Shape shape;
    Inputs in;

    Filled(int64_t position, int64_t rows)
        : ctx(ggml_init({256 * ggml_tensor_overhead(), nullptr, true})),
          shape(ds4::graph::shape_of(kTarget, position, rows, Logits::none)),
          in(ds4::graph::create_inputs(ctx.get(), kTarget, shape)) {
        buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx.get(), test::cpu_buffers()));
        std::vector<int32_t> tokens(rows);
        for (int64_t i = 0; i < rows; i++) tokens[i] = static_cast<int32_t>(3 * i + 1);
        ds4::graph::fill_inputs(in, kTarget, shape, position, tokens);
    }
};

/// Position held by each slot of the three kinds of ring; absent: never written.
struct Shadow {
    std::map<int64_t, int64_t> raw, csa, hca;
    int64_t position = 0;

    /// Slots differ within one op, are inside the ring, and are the last rows'.
    void write(std::map<int64_t, int64_t>& ring, const ggml_tensor* slots, int64_t rows, int64_t capacity) {
        const std::vector<int64_t> all = test::values<int64_t>(slots);
        const int64_t kept = static_cast<int64_t>(all.size());
        CHECK(kept == std::min(rows, capacity));
        CHECK(static_cast<int64_t>(std::set<int64_t>(all.begin(), all.end()).size()) == kept);
        for (int64_t i = 0; i < kept; i++) {
            CHECK(all[i] >= 0 && all[i] < capacity);
            ring[all[i]] = position + rows - kept + i;
        }
    }

    /// Joined row `index` of a compressor is position `wanted`.
    void check_joined(const std::map<int64_t, int64_t>& ring, int64_t capacity, int64_t index, int64_t wanted) const {
        if (wanted < 0) return CHECK(index >= 0 && index < capacity);  // masked, but inside
        const int64_t found =
            index < capacity ? (ring.count(index) ? ring.at(index) : -1) : position + index - capacity;
        CHECK_CLOSE(found, wanted, 0);
    }

    void check_blocks(const std::map<int64_t, int64_t>& ring, const RatioInputs& in, int ratio, int64_t rows) const {
        const int64_t capacity = ds4::state::carry_capacity(ratio);
        std::vector<int64_t> blocks;
        for (int64_t t = position; t < position + rows; t++) {
            if ((t + 1) % ratio == 0) blocks.push_back(t / ratio);
        }
        if (blocks.empty()) return CHECK(!in.own && !in.row && !in.start && !in.previous);
        CHECK(test::values<int64_t>(in.row) == blocks);
        const std::vector<int32_t> own = test::values<int32_t>(in.own), start = test::values<int32_t>(in.start);
        for (size_t i = 0; i < own.size(); i++) {
            check_joined(ring, capacity, own[i], blocks[i / ratio] * ratio + static_cast<int64_t>(i) % ratio);
        }
        for (size_t i = 0; i < blocks.size(); i++) CHECK(start[i] == blocks[i] * ratio);
        if (ratio == ds4::model::kCsaRatio)
            check_previous(ring, in, blocks);
        else
            CHECK(!in.previous && !in.missing);
    }

    void check_previous(const std::map<int64_t, int64_t>& ring, const RatioInputs& in,
                        const std::vector<int64_t>& blocks) const {
        const std::vector<int32_t> previous = test::values<int32_t>(in.previous);
        const std::vector<float> missing = test::values<float>(in.missing);
        for (size_t i = 0; i < previous.size(); i++) {
            const int64_t wanted = (blocks[i / 4] - 1) * 4 + static_cast<int64_t>(i) % 4;
            check_joined(ring, ds4::state::carry_capacity(4), previous[i], wanted);
        }
        for (size_t i = 0; i < missing.size(); i++) {
            CHECK(missing[i] == (blocks[i / 8] == 0 && i % 8 < 4 ? -INFINITY : 0.0f));
        }
    }

    /// The window: slot i holds position P - W + i; the first is hidden from every query.
    void check_window(const Inputs& in) const {
        const std::vector<int32_t> window = test::values<int32_t>(in.window);
        CHECK(static_cast<int64_t>(window.size()) == kTarget.window);
        for (int64_t i = 0; i < kTarget.window; i++) {
            CHECK(window[i] >= 0 && window[i] < ds4::state::raw_capacity(kTarget));
            const int64_t wanted = position - kTarget.window + i;
            if (i > 0 && wanted >= 0) CHECK_CLOSE(raw.count(window[i]) ? raw.at(window[i]) : -1, wanted, 0);
        }
    }

    /// A forward that reads before it writes, as the graph does; `accepted` rows are committed.
    void forward(int64_t rows, int64_t accepted) {
        const Filled f(position, rows);
        check_window(f.in);
        check_blocks(csa, f.in.csa, 4, rows);
        check_blocks(hca, f.in.hca, 128, rows);
        write(raw, f.in.ring, rows, ds4::state::raw_capacity(kTarget));
        write(csa, f.in.csa.carry, rows, ds4::state::carry_capacity(4));
        write(hca, f.in.hca.carry, rows, ds4::state::carry_capacity(128));
        position += accepted;
    }
};

void check_mask(const ggml_tensor* t, const QueryBlock& q, int64_t position, int ratio) {
    const std::vector<float> mask = test::values<float>(t);
    const int64_t width = t->ne[0], keys = kTarget.window + q.count;
    CHECK(t->ne[1] == q.count && width >= keys);
    for (int64_t i = 0; i < static_cast<int64_t>(mask.size()); i++) {
        const int64_t at = position + q.first + i / width, key = i % width;
        const int64_t seen = position + q.first - kTarget.window + key;  // the position a window key stands for
        const bool window = seen >= 0 && seen <= at && at - seen < kTarget.window;
        const bool block = ratio && (key - keys + 1) * ratio - 1 <= at;  // its last position
        CHECK(mask[i] == ((key < keys ? window : block) ? 0.0f : -INFINITY));
    }
}

void check_visible(const ggml_tensor* t, const QueryBlock& q, int64_t position) {
    const std::vector<float> mask = test::contents(t);
    for (int64_t i = 0; i < static_cast<int64_t>(mask.size()); i++) {
        const int64_t at = position + q.first + i / t->ne[0];
        CHECK(mask[i] == (4 * (i % t->ne[0]) + 3 <= at ? 0.0f : -INFINITY));
    }
}

}  // namespace

CASE(inputs_of_the_rows_themselves) {
    const Filled f(250, 70);
    for (int64_t i = 0; i < 70; i++) {
        CHECK(test::values<int32_t>(f.in.tokens)[i] == 3 * i + 1);
        CHECK(test::values<int32_t>(f.in.positions)[i] == 250 + i);
        CHECK(test::values<int32_t>(f.in.inverse)[i] == -250 - i);
        CHECK(test::values<int32_t>(f.in.csa.ape)[i] == (250 + i) % 4);
        CHECK(test::values<int32_t>(f.in.hca.ape)[i] == (250 + i) % 128);
    }
}

CASE(rings_hold_what_is_read_at_every_width) {
    for (int64_t prompt : {0, 1, 3, 31, 32, 47, 48, 127, 128, 150, 300}) {
        Shadow shadow;
        if (prompt) shadow.forward(prompt, prompt);
        for (int64_t rows : {1, 1, 3, 5, 16, 37, 300, 16, 16, 16, 4, 1, 143, 144, 2}) shadow.forward(rows, rows);
    }
}

CASE(rings_hold_what_is_read_after_rejections) {
    std::mt19937 random(3);
    Shadow shadow;
    for (int i = 0; i < 400; i++) {
        const int64_t rows = 1 + random() % ds4::state::kMaxRows;
        shadow.forward(rows, random() % 3 ? random() % (rows + 1) : 0);
    }
    CHECK(shadow.position > 1000);
}

CASE(a_whole_verify_may_be_rejected_at_every_position) {
    Shadow shadow;
    for (int64_t i = 0; i < 300; i++) {
        shadow.forward(ds4::state::kMaxRows, 0);
        shadow.forward(1, 1);
    }
}

CASE(masks_show_the_window_and_the_finished_blocks) {
    for (int64_t position : {0, 1, 2, 3, 30, 31, 32, 33, 63, 126, 127, 128, 1000}) {
        for (int64_t rows : {1, 2, 5, 16, 64, 65, 150}) {
            const Filled f(position, rows);
            int64_t next = 0;
            for (const QueryBlock& q : f.in.queries) {
                CHECK(q.first == next && q.count > 0 && q.count <= ds4::graph::kAttentionRows);
                next += q.count;
                check_mask(q.raw, q, position, 0);
                check_mask(q.csa_mask, q, position, 4);
                check_mask(q.hca_mask, q, position, 128);
                if (f.shape.csa_length) check_visible(q.csa_visible, q, position);
            }
            CHECK(next == rows);
        }
    }
}
