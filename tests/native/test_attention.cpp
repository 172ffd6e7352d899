// Attention with sinks over keys that are values too, (M17), (M18).

#include "check.h"
#include "run_graph.h"

using test::Graph;

namespace {

struct Problem {
    int64_t size, heads, rows, selected, n;
    std::vector<float> q, shared, own, mask, sinks;

    Problem(int64_t size, int64_t selected, int64_t n)
        : size(size),
          heads(3),
          rows(37),
          selected(selected),
          n(n),
          q(test::noise(size * heads * n, 50, 2)),
          shared(test::noise(size * rows, 51)),
          own(test::noise(size * selected * n, 52)),
          mask((rows + selected) * n),
          sinks{2.5f, -1, 0.5f} {
        // Another set of keys for every query, at least one of each kind.
        for (int64_t i = 0; i < static_cast<int64_t>(mask.size()); i++) {
            const int64_t key = i % (rows + selected), query = i / (rows + selected);
            if (key != 3 && key != rows && (key * 7 + query * 5) % 3 == 0) mask[i] = -INFINITY;
        }
    }

    const float* key(int64_t j, int64_t query) const {
        return j < rows ? &shared[j * size] : &own[(query * selected + j - rows) * size];
    }

    /// (M18) for one query and head.
    std::vector<double> wanted(int64_t query, int64_t head) const {
        double sum = std::exp(double(sinks[head]));
        std::vector<double> o(size);
        for (int64_t j = 0; j < rows + selected; j++) {
            double logit = 0;
            for (int64_t c = 0; c < size; c++) logit += double(q[(query * heads + head) * size + c]) * key(j, query)[c];
            const double p = std::exp(logit / std::sqrt(double(size)) + mask[query * (rows + selected) + j]);
            sum += p;
            for (int64_t c = 0; c < size; c++) o[c] += p * key(j, query)[c];
        }
        for (double& v : o) v /= sum;
        return o;
    }

    std::vector<double> wanted() const {
        std::vector<double> all;
        for (int64_t i = 0; i < n * heads; i++) {
            const std::vector<double> o = wanted(i / heads, i % heads);
            all.insert(all.end(), o.begin(), o.end());
        }
        return all;
    }

    std::vector<float> found() const {
        Graph g;
        ds4::ops::AttentionInput in{};
        in.q = g.floats(q, {size, heads, n});
        in.shared = g.floats(shared, {size, rows});
        if (selected) in.selected = g.floats(own, {size, selected, n});
        in.mask = g.floats(mask, {rows + selected, n});
        in.sinks = g.floats(sinks, {heads});
        return g.run(ds4::ops::attention(g.b, in));
    }
};

void check_attention(int64_t selected, int64_t n) {
    for (int64_t size : {64, 256}) {
        const Problem p(size, selected, n);
        CHECK_CLOSE(p.found(), p.wanted(), 5e-6);
    }
}

}  // namespace

CASE(attention_over_shared_keys_of_one_query) { check_attention(0, 1); }
CASE(attention_over_shared_keys_of_several_queries) { check_attention(0, 6); }
CASE(attention_over_selected_keys_of_one_query) { check_attention(9, 1); }
CASE(attention_over_selected_keys_of_several_queries) { check_attention(9, 6); }
CASE(attention_over_one_selected_key) { check_attention(1, 4); }

CASE(attention_with_large_logits_and_sinks) {
    Problem p(64, 9, 3);
    for (float& v : p.q) v *= 40;
    p.sinks = {100, 300, -300};
    // exp() of the reference holds out up to 700 in double
    CHECK_CLOSE(p.found(), p.wanted(), 1e-4);
}
