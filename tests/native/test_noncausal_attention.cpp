// Attention of a draft block: every row sees the same slots of the context ring, and the whole block (docs/dspark.md
// section 2.5).

#include <algorithm>

#include "check.h"
#include "run_graph.h"

using test::Graph;

namespace {

/// A block of `n` rows over a ring of which `visible` slots from `start` on, round its end, hold context.
struct Problem {
    int64_t size, heads, n, capacity, start, visible;
    ggml_type type;
    std::vector<float> q, ring, block, sinks;

    Problem(int64_t size, int64_t heads, int64_t n, int64_t visible, int64_t start, ggml_type type)
        : size(size),
          heads(heads),
          n(n),
          capacity(19),
          start(start),
          visible(visible),
          type(type),
          q(test::noise(size * heads * n, 60, 2)),
          ring(test::noise(size * capacity, 61)),
          block(test::noise(size * n, 62)),
          sinks(test::noise(heads, 63, 2)) {
        if (type == GGML_TYPE_F16) std::ranges::transform(ring, ring.begin(), test::rounded);
        for (int64_t slot = 0; slot < capacity; slot++) {
            if (!shows(slot)) std::fill_n(&ring[slot * size], size, 9.0f);  // would win, were it seen
        }
    }

    bool shows(int64_t slot) const { return (slot - start + capacity) % capacity < visible; }

    /// The keys that every row sees, in any order.
    std::vector<const float*> keys() const {
        std::vector<const float*> all;
        for (int64_t i = 0; i < visible; i++) all.push_back(&ring[(start + i) % capacity * size]);
        for (int64_t i = 0; i < n; i++) all.push_back(&block[i * size]);
        return all;
    }

    std::vector<float> mask() const {
        std::vector<float> m((capacity + n) * n);
        for (int64_t i = 0; i < std::ssize(m); i++) {
            const int64_t key = i % (capacity + n);
            m[i] = key < capacity && !shows(key) ? -INFINITY : 0.0f;
        }
        return m;
    }

    /// Output of one row and head: softmax(q k / sqrt(size)) k with exp(sink) in the denominator.
    std::vector<double> wanted(const float* query, float sink) const {
        double sum = std::exp(double(sink));
        std::vector<double> o(size);
        for (const float* key : keys()) {
            double logit = 0;
            for (int64_t c = 0; c < size; c++) logit += double(query[c]) * key[c];
            const double p = std::exp(logit / std::sqrt(double(size)));
            sum += p;
            for (int64_t c = 0; c < size; c++) o[c] += p * key[c];
        }
        for (double& v : o) v /= sum;
        return o;
    }

    std::vector<double> wanted() const {
        std::vector<double> all;
        for (int64_t i = 0; i < n * heads; i++) {
            const std::vector<double> o = wanted(&q[i * size], sinks[i % heads]);
            all.insert(all.end(), o.begin(), o.end());
        }
        return all;
    }

    std::vector<float> found() const {
        Graph g;
        ds4::ops::NoncausalInput in{};
        in.q = g.floats(q, {size, heads, n});
        in.ring = g.floats(ring, {size, capacity}, type);
        in.block = g.floats(block, {size, n});
        in.mask = g.floats(mask(), {capacity + n, n});
        in.sinks = g.floats(sinks, {heads});
        return g.run(ds4::ops::noncausal_attention(g.b, in));
    }

    /// The rows of the output that differ from `before` in any head.
    std::vector<bool> changed(const std::vector<float>& before) const {
        const std::vector<float> now = found();
        std::vector<bool> rows(n);
        for (size_t i = 0; i < now.size(); i++) {
            if (now[i] != before[i]) rows[i / (size * heads)] = true;
        }
        return rows;
    }
};

bool all(const std::vector<bool>& rows) { return std::ranges::all_of(rows, std::identity()); }
bool any(const std::vector<bool>& rows) { return std::ranges::any_of(rows, std::identity()); }

void check_rows(int64_t size, int64_t heads, ggml_type type) {
    for (int64_t n = 1; n <= 8; n++) {
        const Problem p(size, heads, n, 14, 2 * n, type);
        CHECK_CLOSE(p.found(), p.wanted(), 5e-6);
    }
}

}  // namespace

CASE(noncausal_attention_of_one_to_eight_rows) {
    for (int64_t size : {64, 256, 512}) check_rows(size, 4, GGML_TYPE_F32);
}

CASE(noncausal_attention_of_one_to_eight_heads) {
    for (int64_t heads : {1, 2, 3, 7, 8}) check_rows(64, heads, GGML_TYPE_F32);
}

CASE(noncausal_attention_over_an_f16_ring) {
    for (int64_t size : {64, 256, 512}) check_rows(size, 4, GGML_TYPE_F16);
}

CASE(noncausal_attention_over_a_ring_that_begins_anywhere) {
    for (int64_t start : {0, 1, 8, 18}) {
        for (int64_t visible : {0, 1, 11, 19}) {
            const Problem p(64, 2, 5, visible, start, GGML_TYPE_F16);
            CHECK_CLOSE(p.found(), p.wanted(), 5e-6);
        }
    }
}

CASE(noncausal_attention_with_large_logits_and_sinks) {
    Problem p(64, 3, 5, 11, 15, GGML_TYPE_F32);
    for (float& v : p.q) v *= 40;
    p.sinks = {100, 300, -300};
    CHECK_CLOSE(p.found(), p.wanted(), 1e-4);
}

CASE(every_row_of_a_block_sees_every_visible_slot) {
    for (ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16}) {
        Problem p(64, 2, 5, 12, 13, type);
        const std::vector<float> before = p.found(), ring = p.ring;
        for (int64_t slot = 0; slot < p.capacity; slot++) {
            p.ring = ring;
            for (int64_t c = 0; c < p.size; c++) p.ring[slot * p.size + c] += 1;
            const std::vector<bool> changed = p.changed(before);
            CHECK(p.shows(slot) ? all(changed) : !any(changed));
        }
    }
}

CASE(every_row_of_a_block_sees_every_other_row) {
    Problem p(64, 2, 7, 12, 13, GGML_TYPE_F32);
    const std::vector<float> before = p.found(), block = p.block;
    for (int64_t row = 0; row < p.n; row++) {
        p.block = block;
        for (int64_t c = 0; c < p.size; c++) p.block[row * p.size + c] += 1;
        CHECK(all(p.changed(before)));
    }
}
