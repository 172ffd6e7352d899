#pragma once
// The Markov and confidence heads of a draft block (launcher.h, MarkovHead), with one launch for each position and one
// at the end. The host waits for none of them: each block of a position's launch computes the previous token itself,
// from the candidates that the blocks of the previous launch have left.
//
// The time of a launch is that of reading W2 once. Its rows are contiguous. 16 lanes read a row, so that a wave reads
// two or four adjacent rows. Each block leaves one candidate of its kThreads tokens. All sums have a fixed order.

#include "gpu/gumbel_noise.cuh"
#include "gpu/limits.h"
#include "gpu/weights.cuh"

namespace ds4::kernels::DS4_PLATFORM {

struct MarkovArguments {
    simt::Global<const float> base;      // [vocab, block]
    simt::Global<const int32_t> anchor;  // [1]
    simt::AnyMatrix embedding;           // W1 [rank, vocab]; rank 0 is no bias
    simt::Global<const float> hidden;    // [hidden_size, block]
    simt::AnyMatrix confidence;          // [hidden_size (+ rank), 1]
    simt::Global<const float> bias;      // [1], or null
    simt::NoiseKey key;
    float scale;  // 1 / temperature; 1 where nothing is drawn
    int draws, vocab, block, hidden_size, position;
    int pieces;                          // blocks of a position's launch, one for kThreads tokens
    simt::Global<simt::Candidate> left;  // [pieces, block]
    simt::Global<int32_t> tokens;        // [block]
    simt::Global<float> logits;          // [vocab, block]
    simt::Global<float> log_sum;         // [block]
    simt::Global<float> confidences;     // [block], or null
};

template <typename Weight>
struct MarkovStep {
    MarkovArguments head;
    simt::Global<const Weight> output;  // W2 [rank, vocab]
};

/// Returns the token of a position whose launch has ended, from the candidates of its blocks. The first thread of the
/// grid stores it.
template <int kWave>
DS4_DEVICE int32_t settled(const MarkovArguments& a, int position, simt::Shared<simt::Candidate> parts) {
    const simt::Global<const simt::Candidate> left = a.left;
    const simt::Candidate all = simt::over_blocks<kWave>(left + position * a.pieces, a.pieces, parts, a.scale);
    const int32_t token =
        all.token == simt::kNoToken ? 0 : all.token;  // all are NaN; the next position still reads a valid row
    if (simt::block() == 0 && simt::thread() == 0) {
        a.tokens[position] = token;
        a.log_sum[position] = simt::fma(all.max, a.scale, simt::log(all.sum));
    }
    return token;
}

/// Computes the Markov bias after `token` for kThreads tokens from `first` on, into `biases`. Loads of several rows
/// overlap.
template <int kWave, typename Reader>
DS4_DEVICE void bias(const MarkovStep<typename Reader::Weight>& a, int32_t token, int first,
                     simt::Shared<float> biases) {
    constexpr int kRows = Reader::kRows, kGroups = simt::kThreads / simt::kRowLanes;
    const int lane = simt::thread() % simt::kRowLanes, group = simt::thread() / simt::kRowLanes;
    const int rank = a.head.embedding.columns;
    float x[simt::kOwn];
    DS4_UNROLL
    for (int i = 0; i < simt::kOwn; i++) {
        const int column = Reader::column(i, lane);
        x[i] = column < rank ? simt::any_element(a.head.embedding, token, column) : 0.0f;
    }
    for (int row = group; row < simt::kThreads; row += kRows * kGroups) {
        float dots[kRows];
        DS4_UNROLL
        for (int i = 0; i < kRows; i++) {
            const int own = first + row + i * kGroups;  // past the last token, the last row; the sum is not used
            dots[i] = Reader::dot(a.output, own < a.head.vocab ? own : a.head.vocab - 1, rank, lane, x);
        }
        DS4_UNROLL
        for (int i = 0; i < kRows; i++) {
            DS4_UNROLL
            for (int mask = simt::kRowLanes / 2; mask > 0; mask /= 2) {
                dots[i] += simt::shuffle_xor<kWave>(dots[i], mask);
            }
            if (lane == 0) biases[row + i * kGroups] = dots[i];
        }
    }
}

template <int kWave, typename Reader>
DS4_KERNEL(simt::kThreads)
void markov_position(MarkovStep<typename Reader::Weight> a) {
    DS4_SHARED(simt::Candidate, parts, simt::kParts);
    DS4_SHARED(float, biases, simt::kThreads);
    const MarkovArguments& head = a.head;
    const int first = simt::block() * simt::kThreads, token = first + simt::thread();
    if (head.embedding.columns) {
        const int32_t before = head.position ? settled<kWave>(head, head.position - 1, parts) : head.anchor[0];
        bias<kWave, Reader>(a, before, first, biases);
    } else if (head.position) {
        settled<kWave>(head, head.position - 1, parts);
    }
    simt::barrier();
    simt::Candidate c = simt::no_candidate();
    if (token < head.vocab) {
        const int64_t i = static_cast<int64_t>(head.position) * head.vocab + token;
        float logit = head.base[i];
        if (head.embedding.columns) logit += biases[simt::thread()];
        head.logits[i] = logit;
        const float noise = head.draws ? simt::gumbel(head.key, simt::kProposal, head.position, token) : 0.0f;
        c = simt::candidate(logit, noise, token);
    }
    c = simt::over_block<kWave>(c, parts, simt::MergeCandidates{head.scale});
    if (simt::thread() == 0) head.left[head.position * head.pieces + simt::block()] = c;
}

/// Returns the confidence of a position from its hidden row and, if the head reads it, W1's row of the previous token.
template <int kWave>
DS4_DEVICE float confidence(const MarkovArguments& a, int position, simt::Shared<float> parts) {
    float sum = 0;
    for (int i = simt::thread(); i < a.confidence.columns; i += simt::kThreads) {
        float x;
        if (i < a.hidden_size) {
            x = a.hidden[static_cast<int64_t>(position) * a.hidden_size + i];
        } else {
            const int32_t before = position ? a.tokens[position - 1] : a.anchor[0];
            x = simt::any_element(a.embedding, before, i - a.hidden_size);
        }
        sum = simt::fma(simt::any_element(a.confidence, 0, i), x, sum);
    }
    const float all = simt::over_block<kWave>(sum, parts, simt::Add{});
    return 1 / (1 + simt::exp(-(a.bias ? all + a.bias[0] : all)));
}

/// Stores the last position's token, and computes the confidences; block b computes that of position b.
template <int kWave>
DS4_KERNEL(simt::kThreads)
void markov_end(MarkovArguments a) {
    DS4_SHARED(simt::Candidate, parts, simt::kParts);
    DS4_SHARED(float, sums, simt::kParts);
    if (simt::block() == 0) settled<kWave>(a, a.block - 1, parts);
    if (!a.confidences) return;
    const float found = confidence<kWave>(a, simt::block(), sums);
    if (simt::thread() == 0) a.confidences[simt::block()] = found;
}

/// Makes all arguments except the position and the memory of intermediate results.
inline MarkovArguments markov_arguments(const MarkovHead& w) {
    MarkovArguments a{};
    a.base = w.base;
    a.anchor = w.anchor;
    a.embedding = simt::any_matrix(w.embedding);
    a.hidden = w.hidden;
    a.confidence = simt::any_matrix(w.confidence);
    a.bias = w.confidence_bias;
    a.key = simt::noise_key(w.key);
    a.draws = w.temperature > 0;
    a.scale = a.draws ? 1 / w.temperature : 1;
    a.vocab = w.vocab;
    a.block = w.block;
    a.hidden_size = w.hidden_size;
    a.pieces = (w.vocab + simt::kThreads - 1) / simt::kThreads;
    a.tokens = w.tokens;
    a.logits = w.logits;
    a.log_sum = w.log_sum;
    a.confidences = w.confidences;
    return a;
}

template <int kWave, typename Reader, typename Device>
void launch_positions(Device& device, const MarkovArguments& a, const void* output) {
    using Weight = typename Reader::Weight;
    MarkovStep<Weight> step{a, static_cast<const Weight*>(output)};
    for (; step.head.position < a.block; step.head.position++) {
        device.launch("markov_position", markov_position<kWave, Reader>, a.pieces, simt::kThreads, step);
    }
}

template <int kWave, typename T, typename Device>
void launch_positions_of(Device& device, const MarkovArguments& a, const DeviceMatrix& output) {
    const bool aligned = reinterpret_cast<uintptr_t>(output.data) % (4 * sizeof(T)) == 0;
    if (aligned && output.columns % 4 == 0) return launch_positions<kWave, simt::Fours<T>>(device, a, output.data);
    launch_positions<kWave, simt::Ones<T>>(device, a, output.data);
}

template <int kWave, typename Device>
void launch(Device& device, const MarkovHead& w) {
    require_markov_head(w);
    MarkovArguments a = markov_arguments(w);
    a.left = device.template scratch<simt::Candidate>("left", static_cast<size_t>(a.pieces) * a.block);
    switch (w.output.type) {
        case Element::f32:
            launch_positions_of<kWave, float>(device, a, w.output);
            break;
        case Element::f16:
            launch_positions_of<kWave, simt::Half>(device, a, w.output);
            break;
        case Element::bf16:
            launch_positions_of<kWave, simt::Bfloat>(device, a, w.output);
            break;
        case Element::q8_0:
            launch_positions<kWave, simt::Blocks>(device, a, w.output.data);
    }
    device.launch("markov_end", markov_end<kWave>, a.confidences ? a.block : 1, simt::kThreads, a);
}

}  // namespace ds4::kernels::DS4_PLATFORM
