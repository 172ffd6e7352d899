// Attention, and the steps on rows of floats between the products.

#include <algorithm>

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
    std::vector<float> scratch(kAttentionHeads * count), out(heads * kSize);
    const AttentionQuery query{queries.data(), keys.data(),  kSize,          count,
                               0.5F,           sinks.data(), scratch.data(), out.data()};
    for (int64_t head = 0; head < heads; head += at_once) {
        kernels.attend(query, head, std::min(heads, head + at_once));
    }
    return out;
}

std::vector<float> attention(const Kernels& kernels) { return attended(kernels, 6); }
std::vector<float> attention_head_by_head(const Kernels& kernels) { return attended(kernels, 1); }

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
    } steps[] = {{"attention", attention},       {"swiglu", swiglu},     {"squares", squares},
                 {"weighted_sum", weighted_sum}, {"rms_norm", rms_norm}, {"softmax_mean", softmax_mean}};
    for (const auto& [name, step] : steps) {
        const double apart = difference(run(step, subject.kernels), run(step, reference));
        subject.expect(apart < kRounding, name, "differs");
        subject.steps = std::max(subject.steps, apart);
    }
    subject.expect(same_bits(run(attention, subject.kernels), run(attention_head_by_head, subject.kernels)),
                   "attention", "a head's bits depend on the others");
}

}  // namespace emulated
