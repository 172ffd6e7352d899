// The device kernels of a draft's heads (launcher.h, MarkovHead), emulated: against double loops, and against the graph
// of ggml's operations.

#include "check.h"
#include "emulator/open_launcher.h"
#include "gumbel_reference.h"
#include "ops/markov.h"
#include "run_graph.h"

using ds4::kernels::DeviceMatrix;
using ds4::kernels::Element;
using ds4::kernels::MarkovHead;
using test::Drawn;

namespace {

using Dialect = ds4::emulator::Dialect;
constexpr std::initializer_list<Dialect> kDialects = {Dialect::wave32, Dialect::wave64, Dialect::metal};

ggml_type type_of(Element e) {
    constexpr ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};
    return types[static_cast<int>(e)];
}

/// Random weights of a type, and the numbers that they stand for.
struct Weights {
    test::Store store;
    ggml_tensor* tensor = nullptr;
    DeviceMatrix matrix;
    std::vector<float> exact;

    Weights(int columns, int rows, Element type, uint32_t seed, float spread) {
        if (!columns) return;
        exact = test::noise(static_cast<size_t>(columns) * rows, seed, spread);
        tensor = store.add(exact, {columns, rows}, type_of(type));
        const auto widen = ggml_get_type_traits(tensor->type)->to_float;  // null for F32
        if (widen) widen(tensor->data, exact.data(), static_cast<int64_t>(exact.size()));
        matrix = {tensor->data, type, columns, rows};
    }
    std::span<const float> row(int i) const {
        return std::span(exact).subspan(static_cast<size_t>(i) * matrix.columns, matrix.columns);
    }
};

struct Shape {
    int vocab, rank, block;
    Element type = Element::f32;
    float temperature = 0;
    int hidden = 0;  // 0 is no confidence head
    bool head_reads_w1 = true, head_bias = true;
};

double dot(std::span<const float> a, std::span<const float> b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) sum += double(a[i]) * b[i];
    return sum;
}

struct Problem {
    Shape s;
    std::vector<float> base, hidden;
    Weights w1, w2, head;
    int32_t anchor;
    float bias = 0.3f;
    ds4::kernels::DrawKey key{0x123456789abcdef0, 77};

    explicit Problem(const Shape& shape)
        : s(shape),
          base(test::noise(static_cast<size_t>(s.vocab) * s.block, 90, 2)),
          hidden(test::noise(static_cast<size_t>(s.hidden) * s.block, 91)),
          w1(s.rank, s.vocab, s.type, 92, 1),
          w2(s.rank, s.vocab, s.type, 93, 0.3f),
          head(s.hidden ? s.hidden + (s.head_reads_w1 ? s.rank : 0) : 0, 1, s.type, 94, 0.1f),
          anchor(s.vocab / 2) {}

    std::vector<float> logits(int j, int32_t before) const {
        std::vector<float> z(base.begin() + static_cast<int64_t>(j) * s.vocab, base.begin() + (j + 1LL) * s.vocab);
        for (int v = 0; s.rank && v < s.vocab; v++) z[v] = static_cast<float>(z[v] + dot(w1.row(before), w2.row(v)));
        return z;
    }

    double confidence(int j, int32_t before) const {
        const auto weights = head.row(0);
        double sum = s.head_bias ? bias : 0;
        sum += dot(std::span(hidden).subspan(static_cast<size_t>(j) * s.hidden, s.hidden), weights);
        if (s.head_reads_w1 && s.rank) sum += dot(w1.row(before), weights.subspan(s.hidden));
        return 1 / (1 + std::exp(-sum));
    }
};

struct Found {
    std::vector<int32_t> tokens;
    std::vector<float> logits, log_sum, confidences;

    bool operator==(const Found&) const = default;
};

Found run(const Problem& p, Dialect dialect) {
    const Shape& s = p.s;
    Found f{std::vector<int32_t>(s.block), std::vector<float>(p.base.size()), std::vector<float>(s.block),
            std::vector<float>(s.hidden ? s.block : 0)};
    MarkovHead w{};
    w.base = p.base.data();
    w.anchor = &p.anchor;
    w.embedding = p.w1.matrix;
    w.output = p.w2.matrix;
    w.hidden = s.hidden ? p.hidden.data() : nullptr;
    w.confidence = p.head.matrix;
    w.confidence_bias = s.hidden && s.head_bias ? &p.bias : nullptr;
    w.temperature = s.temperature;
    w.key = p.key;
    w.vocab = s.vocab, w.block = s.block, w.hidden_size = s.hidden;
    w.tokens = f.tokens.data();
    w.logits = f.logits.data();
    w.log_sum = f.log_sum.data();
    w.confidences = s.hidden ? f.confidences.data() : nullptr;
    const auto launcher = ds4::emulator::open_launcher(dialect);
    launcher->run(w);
    launcher->synchronize();
    return f;
}

double tolerance(double wanted) { return 1e-4 * std::max(1.0, std::fabs(wanted)); }

void check_position(const Problem& p, const Found& f, int j) {
    const int32_t before = j ? f.tokens[j - 1] : p.anchor, token = f.tokens[j];
    const auto found = std::span(f.logits).subspan(static_cast<size_t>(j) * p.s.vocab, p.s.vocab);
    const std::vector<float> wanted = p.logits(j, before);
    for (int v = 0; v < p.s.vocab; v++) CHECK_CLOSE(found[v], wanted[v], tolerance(wanted[v]));
    const double temperature = p.s.temperature > 0 ? p.s.temperature : 1;
    const double sum = test::log_sum_exp(wanted, temperature);
    CHECK_CLOSE(f.log_sum[j], sum, tolerance(sum));
    if (p.s.temperature > 0) {
        CHECK(test::missed_by(test::log_softmax(found, temperature), p.key, Drawn::proposal, j, token) < 1e-5);
    } else {
        CHECK(token == std::ranges::max_element(found) - found.begin());
    }
    if (p.s.hidden) CHECK_CLOSE(f.confidences[j], p.confidence(j, before), 1e-4);
}

/// Checks that all dialects give the same bits, and that they agree with the reference.
void verify(const Problem& p) {
    const Found f = run(p, Dialect::wave32);
    for (int j = 0; j < p.s.block; j++) check_position(p, f, j);
    CHECK(f == run(p, Dialect::wave64));
    CHECK(f == run(p, Dialect::metal));
}

}  // namespace

CASE(device_heads_of_every_weight_type) {
    for (const Element type : {Element::f32, Element::f16, Element::bf16, Element::q8_0}) {
        for (const float temperature : {0.0f, 0.7f}) verify(Problem({300, 64, 3, type, temperature, 96}));
        verify(Problem({70, 256, 2, type, 1.5f, 32}));
        verify(Problem({70, 32, 2, type, 0.7f, 0}));
    }
}

CASE(device_heads_of_vocabularies_that_are_multiples_of_nothing) {
    for (const int vocab : {1, 7, 129, 1000}) {
        verify(Problem({vocab, 12, 2, Element::f16, 0, 9}));
        verify(Problem({vocab, 12, 2, Element::f16, 1.5f, 9}));
    }
    verify(Problem({5003, 8, 2, Element::bf16, 0.7f}));
}

CASE(device_heads_of_ranks_that_rows_are_not_aligned_to) {
    for (const Element type : {Element::f32, Element::f16, Element::bf16}) {
        for (const int rank : {1, 3, 37, 255}) verify(Problem({60, rank, 2, type, 0.7f, 5}));
    }
}

CASE(device_heads_of_every_block) {
    for (int block = 1; block <= 7; block++) verify(Problem({50, 16, block, Element::f32, 1.5f, 300}));
}

CASE(device_heads_without_a_bias_or_with_less_of_a_confidence) {
    verify(Problem({300, 0, 5, Element::f32, 0, 20}));
    verify(Problem({300, 0, 5, Element::f32, 0.7f, 20}));
    verify(Problem({90, 32, 3, Element::f32, 0.7f, 20, false, true}));
    verify(Problem({90, 32, 3, Element::f32, 0.7f, 20, true, false}));
}

CASE(device_heads_take_the_lowest_id_of_equals) {
    Problem p({2000, 0, 2});
    for (float& x : p.base) x = std::min(x, 1.0f);
    verify(p);
    p.base.assign(p.base.size(), -0.5f);
    verify(p);
    CHECK((run(p, Dialect::wave32).tokens == std::vector<int32_t>{0, 0}));
}

CASE(device_heads_of_extreme_logits) {
    for (const float temperature : {0.0f, 0.01f, 0.7f, 1.5f}) {
        Problem p({700, 0, 2, Element::f32, temperature});
        for (size_t i = 0; i < p.base.size(); i++) p.base[i] += i % 3 ? 80.0f : -80.0f;
        for (size_t i = 0; i < p.base.size(); i += 5) p.base[i] = -std::numeric_limits<float>::infinity();
        verify(p);
    }
}

CASE(device_heads_show_damaged_logits_in_the_sum) {
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    for (const float damage : {infinity, nan}) {
        Problem p({400, 0, 2, Element::f32, 0.7f});
        p.base[13] = damage;
        for (const Dialect d : kDialects) {
            const Found f = run(p, d);
            CHECK(!std::isfinite(f.log_sum[0]));
            CHECK(std::isfinite(f.log_sum[1]));
        }
    }
    Problem p({400, 8, 2, Element::f32, 0.7f});
    std::ranges::fill(std::span(p.base).first(400), nan);  // a token has to be found all the same, for W1's row
    for (const Dialect d : kDialects) CHECK(std::isnan(run(p, d).log_sum[0]));
}

CASE(device_heads_agree_with_the_graph) {
    const Problem p({500, 48, 4, Element::f16, 0});
    test::Graph g;
    const auto chain = ds4::ops::generic::markov_chain(
        g.b, {g.floats(p.base, {500, 4}), g.ints({p.anchor}, {1}), p.w1.tensor, p.w2.tensor, 0, nullptr});
    std::vector<int32_t> wanted;
    for (ggml_tensor* t : chain.tokens) {
        ggml_set_output(t);
        g.b.expanded(t);
    }
    g.compute({});
    for (ggml_tensor* t : chain.tokens) wanted.push_back(g.read_ints(t)[0]);
    for (const Dialect d : kDialects) CHECK(run(p, d).tokens == wanted);
}

CASE(device_heads_have_the_distribution_of_the_graph) {
    Problem p({500, 48, 1, Element::f16, 0.7f});
    ds4::SamplingPolicy policy;
    policy.temperature = 0.7f;
    ds4::Sampler sampler(policy);
    ds4::ops::ProposalDraw draw;
    draw.sampler = &sampler;
    draw.history = {p.anchor};
    draw.uniforms = {0.5};
    test::Graph g;
    const auto chain = ds4::ops::generic::markov_chain(
        g.b, {g.floats(p.base, {500, 1}), g.ints({p.anchor}, {1}), p.w1.tensor, p.w2.tensor, 0, &draw});
    const std::vector<float> q = g.run(chain.q[0]);
    const Found f = run(p, Dialect::wave32);
    for (size_t v = 0; v < q.size(); v++) {
        CHECK_CLOSE(std::exp(f.logits[v] / 0.7f - f.log_sum[0]), q[v], 1e-4 * q[v] + 1e-9);
    }
}

CASE(device_heads_refuse_what_they_cannot_do) {
    Problem p({300, 0, 1});
    const auto launcher = ds4::emulator::open_launcher(Dialect::wave32);
    MarkovHead w{};
    w.vocab = 300, w.block = 1;
    w.embedding = w.output = {p.base.data(), Element::f32, 257, 300};
    REQUIRE_THROWS(ds4::BackendError, launcher->run(w));
}
