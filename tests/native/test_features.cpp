// The features that a drafter keeps of the target's forwards, and how its context rings follow (docs/dspark.md
// sections 2.1, 2.3, 4.2): against a shadow of the rings that says which position each slot holds.

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "check.h"
#include "ggml-cpp.h"
#include "graph/draft.h"
#include "graph/features.h"
#include "graph/inputs.h"
#include "graph/markov.h"
#include "run_graph.h"

using ds4::graph::DraftInputs;
using ds4::graph::Logits;
using test::Graph;

namespace {

ds4::drafter::Hyperparameters small_drafter(bool from_anchor = true) {
    ds4::drafter::Hyperparameters hp{};
    hp.block = 5;
    hp.from_anchor = from_anchor;
    hp.noise = 99;
    hp.stages = test::small_target();
    return hp;
}

const int64_t kCapacity = ds4::state::context_capacity(small_drafter());
const int64_t kWindow = small_drafter().stages.window;

/// Tensors of one call with memory of their own.
struct Memory {
    ggml_context_ptr ctx{ggml_init({64 * ggml_tensor_overhead(), nullptr, true})};
    ggml_backend_buffer_ptr buffer;

    ggml_tensor* add(ggml_type type, int64_t n0, int64_t n1 = 1) { return ggml_new_tensor_2d(ctx.get(), type, n0, n1); }
    void allocate() { buffer.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx.get(), test::cpu_buffers())); }
};

/// The feature slots of a forward.
std::vector<int64_t> feature_slots(int64_t position, int64_t rows) {
    const ds4::model::Hyperparameters hp = test::small_target();
    const auto shape = ds4::graph::shape_of(hp, position, rows, Logits::none, std::min(rows, kCapacity));
    Memory memory;
    ds4::graph::Inputs in;
    in.features = memory.add(GGML_TYPE_I64, shape.features);
    memory.allocate();
    ds4::graph::fill_inputs(in, hp, shape, position, std::vector<int32_t>(rows), kCapacity);
    return test::values<int64_t>(in.features);
}

/// The inputs of a draft, filled.
struct Filled {
    Memory memory;
    DraftInputs in{};

    Filled(const ds4::drafter::Hyperparameters& hp, int64_t position, int64_t context, int64_t oldest) {
        in.tokens = memory.add(GGML_TYPE_I32, hp.rows());
        in.positions = memory.add(GGML_TYPE_I32, hp.rows());
        in.inverse = memory.add(GGML_TYPE_I32, hp.rows());
        in.mask = memory.add(GGML_TYPE_F32, kCapacity + hp.rows(), hp.rows());
        if (context) {
            in.features = memory.add(GGML_TYPE_I32, context);
            in.slots = memory.add(GGML_TYPE_I64, context);
            in.past = memory.add(GGML_TYPE_I32, context);
        }
        memory.allocate();
        ds4::graph::fill_draft_inputs(in, hp, {context, 0, false}, position, oldest, 7);
    }
};

/// Position held by each slot of the feature ring and of the context rings.
struct Shadow {
    std::map<int64_t, int64_t> features, context;
    int64_t position = 0, projected = 0;

    void forward(int64_t rows, int64_t accepted) {
        const std::vector<int64_t> slots = feature_slots(position, rows);
        const int64_t kept = std::ssize(slots);
        CHECK(std::ssize(std::set<int64_t>(slots.begin(), slots.end())) == kept);
        for (int64_t i = 0; i < kept; i++) features[slots[i]] = position + rows - kept + i;
        position += accepted;
    }

    /// Projects the positions that no draft has yet, and checks that what is visible is the window.
    void draft() {
        const int64_t first = std::max(projected, std::max<int64_t>(0, position - kWindow));
        const Filled f(small_drafter(), position, position - first, 0);
        for (int64_t i = 0; i < position - first; i++) {
            CHECK(test::values<int32_t>(f.in.past)[i] == first + i);
            CHECK(features.at(test::values<int32_t>(f.in.features)[i]) == first + i);
            context[test::values<int64_t>(f.in.slots)[i]] = first + i;
        }
        projected = position;
        check_visible(test::values<float>(f.in.mask));
    }

    void check_visible(const std::vector<float>& mask) const {
        std::set<int64_t> seen;
        for (int64_t slot = 0; slot < kCapacity; slot++) {
            if (mask[slot] == 0) seen.insert(context.count(slot) ? context.at(slot) : -1);
        }
        const int64_t oldest = std::max<int64_t>(0, position - kWindow);
        CHECK(std::ssize(seen) == position - oldest);
        if (!seen.empty()) CHECK(*seen.begin() == oldest && *seen.rbegin() == position - 1);
    }
};

}  // namespace

CASE(stream_mean_is_the_plain_mean) {
    const int64_t hidden = 12, streams = 4, n = 5;
    const std::vector<float> x = test::noise(hidden * streams * n, 70);
    std::vector<double> wanted(hidden * n);
    for (int64_t i = 0; i < hidden * streams * n; i++) {
        wanted[i / (hidden * streams) * hidden + i % hidden] += double(x[i]) / streams;
    }
    Graph g;
    CHECK_CLOSE(g.run(ds4::graph::stream_mean(g.b, g.floats(x, {hidden, streams, n}))), wanted, 1e-6);
}

CASE(features_lie_below_each_other_in_the_order_of_the_taps) {
    const int64_t hidden = 3, capacity = 6;
    const std::vector<int32_t> slots{4, 5, 0, 1};  // round the end
    test::Store store;
    ggml_tensor* ring = store.add(std::vector<float>(2 * hidden * capacity, -1), {2 * hidden, capacity});
    const std::vector<float> first = test::noise(hidden * 4, 71), second = test::noise(hidden * 4, 72);
    Graph g;
    ds4::graph::keep_features(g.b, {g.floats(first, {hidden, 4}), g.floats(second, {hidden, 4})}, ring,
                              g.ints(slots, {4}));
    g.compute({});
    const std::vector<float> found = test::contents(ring);
    std::vector<float> wanted(2 * hidden * capacity, -1);
    for (int64_t row = 0; row < 4; row++) {
        std::copy_n(&first[row * hidden], hidden, &wanted[slots[row] * 2 * hidden]);
        std::copy_n(&second[row * hidden], hidden, &wanted[slots[row] * 2 * hidden + hidden]);
    }
    CHECK(found == wanted);
}

CASE(a_draft_sees_the_window_after_any_forwards) {
    for (int64_t prompt : {0, 1, 5, 31, 32, 33, 47, 48, 49, 300}) {
        Shadow shadow;
        if (prompt) shadow.forward(prompt, prompt);
        shadow.draft();
        for (int64_t rows : {1, 1, 6, 16, 16, 16, 1, 48, 49, 5, 200, 16, 2}) {
            shadow.forward(rows, rows);
            shadow.draft();
        }
    }
}

CASE(a_draft_sees_the_window_after_rejections_and_pauses) {
    std::mt19937 random(6);
    Shadow shadow;
    for (int i = 0; i < 1000; i++) {
        const int64_t rows = 1 + random() % ds4::state::kMaxRows;
        shadow.forward(rows, random() % (rows + 1));
        if (random() % 3) shadow.draft();
    }
    CHECK(shadow.position > 3000);
}

CASE(rows_of_a_draft_block) {
    for (bool from_anchor : {true, false}) {
        const ds4::drafter::Hyperparameters hp = small_drafter(from_anchor);
        const Filled f(hp, 200, 0, 0);
        const std::vector<int32_t> tokens = test::values<int32_t>(f.in.tokens);
        CHECK(std::ssize(tokens) == (from_anchor ? 5 : 6));
        for (int64_t i = 0; i < hp.rows(); i++) {
            CHECK(tokens[i] == (i ? 99 : 7));
            CHECK(test::values<int32_t>(f.in.positions)[i] == 200 + i);
            CHECK(test::values<int32_t>(f.in.inverse)[i] == -200 - i);
        }
    }
}

CASE(every_row_of_a_draft_has_the_same_mask) {
    const ds4::drafter::Hyperparameters hp = small_drafter();
    for (int64_t position : {0, 3, 32, 100}) {
        const std::vector<float> mask = test::values<float>(Filled(hp, position, 0, 0).in.mask);
        const int64_t width = kCapacity + hp.rows();
        for (int64_t i = 0; i < std::ssize(mask); i++) {
            CHECK(mask[i] == mask[i % width]);
            if (i % width >= kCapacity) CHECK(mask[i] == 0);
        }
    }
}

CASE(positions_without_features_stay_hidden) {
    for (int64_t oldest : {70, 90, 99, 100}) {
        const std::vector<float> mask = test::values<float>(Filled(small_drafter(), 100, 0, oldest).in.mask);
        for (int64_t slot = 0; slot < kCapacity; slot++) {
            const int64_t held = 99 - (99 - slot + kCapacity) % kCapacity;  // the last position before 100 in this slot
            CHECK(mask[slot] == (held >= oldest && held >= 100 - kWindow ? 0.0f : -INFINITY));
        }
    }
}

CASE(what_is_kept_is_kept_with_what_it_views) {
    test::Graph g;
    ggml_tensor* x = ggml_scale(g.b.ctx, g.floats(test::noise(64, 90), {8, 8}), 2);
    ggml_tensor* half = ggml_view_2d(g.b.ctx, x, 8, 4, x->nb[1], 4 * x->nb[1]);
    ds4::graph::keep(g.b, half);
    CHECK(half->flags & GGML_TENSOR_FLAG_OUTPUT);
    CHECK(x->flags & GGML_TENSOR_FLAG_OUTPUT);  // the one that ggml's allocator looks at
}
