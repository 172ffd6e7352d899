// Attention, and the steps on rows of floats between the products.

#include <algorithm>
#include <bit>

#include "agreement.h"
#include "random.h"

namespace emulated {
namespace {

constexpr int64_t kSize = 75;  // leaves a rest that fills no vector

std::vector<const float*> rows_of(const std::vector<float>& values) {
    std::vector<const float*> rows;
    for (size_t at = 0; at < values.size(); at += kSize) rows.push_back(values.data() + at);
    return rows;
}

/// Six heads over 41 keys, so many heads in a call.
std::vector<float> attended(const Kernels& kernels, int64_t at_once) {
    constexpr int64_t heads = 6, count = 41;
    const std::vector<float> queries = random_floats(heads * kSize, 2), values = random_floats(count * kSize, 2);
    const std::vector<float> sinks = random_floats(heads);
    const std::vector<const float*> keys = rows_of(values);
    std::vector<float> scratch(heads * count), out(heads * kSize);
    const AttentionQuery query{queries.data(), keys.data(),  kSize,          count,
                               0.5F,           sinks.data(), scratch.data(), out.data()};
    for (int64_t head = 0; head < heads; head += at_once) {
        kernels.attend(query, head, std::min(heads, head + at_once));
    }
    return out;
}

std::vector<float> attention(const Kernels& kernels) { return attended(kernels, 6); }
std::vector<float> attention_head_by_head(const Kernels& kernels) { return attended(kernels, 1); }

/// 19 keys of both forms, for 24 heads and 8 that fill up; in pieces of `at_once`.
std::vector<float> indexed(const Kernels& kernels, int64_t at_once) {
    constexpr int64_t size = 48, heads = 32, count = 19;
    const std::vector<float> query = random_floats(size * heads), keys = random_floats(size * count);
    std::vector<float> weights = random_floats(heads), scratch(2 * (size + heads)), out(2 * count);
    std::fill(weights.begin() + 24, weights.end(), 0.0F);
    std::vector<uint16_t> halves;
    for (const float key : keys) {  // a sign and a mantissa are as good as a number
        const auto bits = std::bit_cast<uint32_t>(key);
        halves.push_back(static_cast<uint16_t>((bits >> 16 & 0x8000) | 0x3400 | (bits >> 13 & 0x3ff)));
    }
    const IndexQuery q{query.data(), weights.data(), size, heads, scratch.data()};
    for (int64_t key = 0; key < count; key += at_once) {
        const int64_t last = std::min(count, key + at_once);
        kernels.index_scores(q, {keys.data(), size * sizeof(float), false}, key, last, out.data());
        kernels.index_scores(q, {halves.data(), size * sizeof(uint16_t), true}, key, last, out.data() + count);
    }
    return out;
}

std::vector<float> index_scores(const Kernels& kernels) { return indexed(kernels, 19); }
std::vector<float> index_scores_key_by_key(const Kernels& kernels) { return indexed(kernels, 1); }

std::vector<float> swiglu(const Kernels& kernels) {
    std::vector<float> gate = random_floats(kSize, 8);
    kernels.swiglu(gate.data(), random_floats(kSize, 8).data(), kSize, 5);
    return gate;
}

std::vector<float> squares(const Kernels& kernels) { return {kernels.squares(random_floats(kSize).data(), kSize)}; }

std::vector<float> weighted_sum(const Kernels& kernels) {
    constexpr int64_t sources = 5;
    const std::vector<float> x = random_floats(sources * kSize), weights = random_floats(sources);
    std::vector<float> out(kSize);
    kernels.weighted_sum(rows_of(x).data(), weights.data(), sources, kSize, out.data());
    return out;
}

std::vector<float> rms_norm(const Kernels& kernels) {
    const std::vector<float> x = random_floats(kSize), weight = random_floats(kSize);
    std::vector<float> out(2 * kSize);
    kernels.rms_norm(x.data(), weight.data(), kSize, 1e-6F, out.data());
    kernels.rms_norm(x.data(), nullptr, kSize, 1e-6F, out.data() + kSize);
    return out;
}

std::vector<float> softmax_mean(const Kernels& kernels) {
    constexpr int64_t slots = 8;
    const std::vector<float> values = random_floats(slots * kSize), scores = random_floats(slots * kSize, 20);
    std::vector<float> out(kSize);
    kernels.softmax_mean(rows_of(values).data(), rows_of(scores).data(), slots, kSize, out.data());
    return out;
}

using Step = std::vector<float> (*)(const Kernels&);

/// The same numbers go into the same step.
std::vector<float> run(Step step, const Kernels& kernels) {
    random().seed(2);
    return step(kernels);
}

}  // namespace

void check_steps(Subject& subject) {
    const struct {
        const char* name;
        Step step;
    } steps[] = {{"attention", attention},      {"index_scores", index_scores}, {"swiglu", swiglu},
                 {"squares", squares},          {"weighted_sum", weighted_sum}, {"rms_norm", rms_norm},
                 {"softmax_mean", softmax_mean}};
    for (const auto& [name, step] : steps) {
        const double apart = difference(run(step, subject.kernels), run(step, reference));
        subject.expect(apart < kRounding, name, "differs");
        subject.steps = std::max(subject.steps, apart);
    }
    subject.expect(same_bits(run(attention, subject.kernels), run(attention_head_by_head, subject.kernels)),
                   "attention", "a head's bits depend on the others");
    subject.expect(same_bits(run(index_scores, subject.kernels), run(index_scores_key_by_key, subject.kernels)),
                   "index_scores", "a key's bits depend on the others");
}

}  // namespace emulated
