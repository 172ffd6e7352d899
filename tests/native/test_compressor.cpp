// Compressors, (M21)-(M24): the op, and the block with its carry rings from forward to forward.

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "check.h"
#include "graph/blocks.h"
#include "reference.h"
#include "run_graph.h"

using ds4::graph::Logits;
using ds4::graph::Shape;
using ds4::model::Hyperparameters;
using test::Graph;

namespace {

/// (M22), (M23): one channel of one block; slots are `stride` apart.
double weighted_sum(const float* kv, const float* score, int64_t slots, int64_t stride) {
    double highest = -INFINITY, sum = 0, weight = 0;
    for (int64_t s = 0; s < slots; s++) highest = std::fmax(highest, score[s * stride]);
    for (int64_t s = 0; s < slots; s++) {
        const double g = std::exp(score[s * stride] - highest);
        sum += g * kv[s * stride];
        weight += g;
    }
    return sum / weight;
}

/// Three blocks; with halves, as in CSA, whose first block has none before it where `first` says so.
void check_compress(int64_t ratio, bool halves, bool first, bool own) {
    constexpr int64_t size = 68, blocks = 3, capacity = 9;
    const int64_t width = halves ? 2 * size : size, positions = ratio * (blocks + 1),
                  slots = halves ? 2 * ratio : ratio;
    const std::vector<float> kv = test::noise(width * positions, 20), score = test::noise(kv.size(), 21, 2);
    const auto before = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin(), all.begin() + capacity * width);
    };
    const auto after = [&](const std::vector<float>& all) {
        return std::vector<float>(all.begin() + capacity * width, all.end());
    };
    std::vector<int32_t> previous(ratio * blocks), current(ratio * blocks);
    std::iota(previous.begin(), previous.end(), 0);
    std::iota(current.begin(), current.end(), static_cast<int32_t>(ratio));
    std::vector<float> missing(slots * blocks);
    if (first) std::fill_n(missing.begin(), ratio, -INFINITY);
    Graph g;
    g.b.choice = ds4::kernels::KernelChoice::of_cpu(own);
    ds4::ops::CompressInput in{};
    in.ring_kv = g.floats(before(kv), {width, capacity}), in.kv = g.floats(after(kv), {width, positions - capacity});
    in.ring_score = g.floats(before(score), {width, capacity});
    in.score = g.floats(after(score), {width, positions - capacity});
    in.own = g.ints(current, {ratio * blocks});
    if (halves) in.previous = g.ints(previous, {ratio * blocks}), in.missing = g.floats(missing, {1, slots, blocks});
    in.size = size, in.blocks = blocks;
    const std::vector<float> found = g.run(ds4::ops::compress(g.b, in));
    std::vector<double> wanted(size * blocks);
    for (int64_t i = 0; i < size * blocks; i++) {
        std::vector<float> values, scores;
        const auto add = [&](int64_t position, int64_t column) {
            values.push_back(kv[position * width + column]), scores.push_back(score[position * width + column]);
        };
        const int64_t block = i / size, column = i % size;
        for (int64_t k = 0; halves && !(first && block == 0) && k < ratio; k++) add(block * ratio + k, column);
        for (int64_t k = 0; k < ratio; k++) add((block + 1) * ratio + k, column + width - size);
        wanted[i] = weighted_sum(values.data(), scores.data(), std::ssize(values), 1);
    }
    CHECK_CLOSE(found, wanted, 3e-6);
}

/// One compressor of random weights and what it must produce, position by position.
struct Rig {
    Hyperparameters hp = test::small_target();
    int ratio;
    int64_t size, width;
    std::vector<float> kv, gate, ape, norm;
    test::Store store;
    ds4::weights::Compressor weights;
    ds4::state::State state;
    std::vector<std::vector<double>> kappa, gamma;  // of every committed position

    explicit Rig(int ratio)
        : ratio(ratio),
          size(hp.head_size),
          width(Hyperparameters::compress_width(ratio, size)),
          kv(test::noise(hp.hidden * width, 30, 0.4f)),
          gate(test::noise(hp.hidden * width, 31, 0.4f)),
          ape(test::noise(width * ratio, 32)),
          norm(test::noise(size, 33)),
          state(hp, 2048, GGML_TYPE_F32, ds4::state::same_buffer_type(test::cpu_buffers(), hp.layers)) {
        weights = {store.add(kv, {hp.hidden, width}), store.add(gate, {hp.hidden, width}),
                   store.add(ape, {width, ratio}), store.add(norm, {size})};
        poison();
    }

    const ds4::state::CompressorState& carried() const {
        return state.layers()[ratio == ds4::model::kCsaRatio ? 0 : 1].compressor;
    }
    int64_t position() const { return static_cast<int64_t>(kappa.size()); }

    /// Fills the rings with numbers that would be seen: what was never written must not be read.
    void poison() {
        for (ggml_tensor* t : {carried().kv, carried().score}) {
            const std::vector<float> values(ggml_nelements(t), 1e4f);
            ggml_backend_tensor_set(t, values.data(), 0, ggml_nbytes(t));
        }
    }

    /// A forward of `rows` positions of which the first `accepted` are committed.
    void forward(int64_t rows, int64_t accepted) {
        const std::vector<float> h = test::noise(hp.hidden * rows, static_cast<uint32_t>(1000 * position() + rows));
        const Shape shape = ds4::graph::shape_of(hp, position(), rows, Logits::none);
        Graph g(1024);
        const ds4::graph::Inputs in = ds4::graph::create_inputs(g.b.ctx, hp, shape);
        const ds4::graph::Context c{g.b, hp, shape, in};
        ds4::graph::compressor_block(c, weights, carried(), ratio, size, g.floats(h, {hp.hidden, rows}));
        const std::vector<int32_t> tokens(rows);
        g.compute({}, [&] { ds4::graph::fill_inputs(in, hp, shape, position(), tokens); });
        for (int64_t i = 0; i < accepted; i++) commit(&h[i * hp.hidden]);
    }

    /// Computes (M21) for one position.
    void commit(const float* h) {
        const int64_t t = position();
        kappa.push_back(test::matmul(kv, hp.hidden, width, h));
        gamma.push_back(test::matmul(gate, hp.hidden, width, h));
        for (int64_t i = 0; i < width; i++) gamma.back()[i] += ape[t % ratio * width + i];
    }

    /// The slots of channel c of block b: its own positions and, for CSA, those of the block before.
    std::vector<std::pair<double, double>> slots(int64_t block, int64_t c) const {
        std::vector<std::pair<double, double>> all;
        auto add = [&](int64_t t, int64_t column) { all.emplace_back(gamma[t][column], kappa[t][column]); };
        for (int64_t j = 0; ratio == ds4::model::kCsaRatio && block && j < ratio; j++) add(ratio * (block - 1) + j, c);
        for (int64_t j = 0; j < ratio; j++) add(ratio * block + j, ratio == ds4::model::kCsaRatio ? size + c : c);
        return all;
    }

    std::vector<double> wanted_row(int64_t block) const {
        std::vector<double> row(size);
        for (int64_t c = 0; c < size; c++) {
            double sum = 0;
            for (auto [score, value] : slots(block, c)) {
                sum += std::exp(score);
                row[c] += std::exp(score) * value;
            }
            row[c] /= sum;
        }
        test::rms_norm(row, norm, hp.norm_epsilon);
        test::compressed_rope(row.data(), size, hp, block * ratio);
        return row;
    }

    void check_rows() const {
        const std::vector<float> rows = test::contents(carried().rows);
        for (int64_t b = 0; b < position() / ratio; b++) {
            const std::vector<float> found(rows.begin() + b * size, rows.begin() + (b + 1) * size);
            CHECK_CLOSE(found, wanted_row(b), 2e-5);
        }
    }
};

/// First a prompt of each length, then forwards of the given widths, all of them committed.
void check_sequences(int ratio, const std::vector<int64_t>& widths) {
    for (int64_t prompt : {1, 2, 3, 4, 5, 126, 127, 128, 129}) {
        Rig rig(ratio);
        rig.forward(prompt, prompt);
        rig.check_rows();
        for (int64_t rows : widths) {
            rig.forward(rows, rows);
            rig.check_rows();
        }
        if (check::failures()) return;
    }
}

/// Verifies that are rejected whole, and in between verifies of any width with random parts rejected.
void check_rejections(int ratio) {
    std::mt19937 random(5);
    Rig rig(ratio);
    rig.forward(101, 101);
    for (int i = 0; i < 120 && !check::failures(); i++) {
        rig.forward(ds4::state::kMaxRows, 0);
        const int64_t rows = 1 + random() % ds4::state::kMaxRows;
        rig.forward(rows, random() % (rows + 1));
        rig.check_rows();
    }
    CHECK(rig.position() > 400);
}

}  // namespace

CASE(compress_ratio_4) {
    for (bool own : {false, true}) check_compress(4, true, false, own);
}

CASE(compress_ratio_4_without_a_block_before) {
    for (bool own : {false, true}) check_compress(4, true, true, own);
}

CASE(compress_ratio_128) {
    for (bool own : {false, true}) check_compress(128, false, false, own);
}

CASE(compressor_block_ratio_4_in_sequence) {
    check_sequences(4, {1, 3, 5, 16, 37, 1, 300, 1, 1, 1, 1, 16, 5, 3});
    check_sequences(4, {300, 37, 16, 16, 5, 3, 1});
}

CASE(compressor_block_ratio_128_in_sequence) {
    check_sequences(128, {1, 3, 5, 16, 37, 1, 300, 16, 16, 16, 16, 16, 16, 16, 16, 16, 5, 3});
    check_sequences(128, {300, 37, 37, 37, 16, 5, 3, 1});
}

CASE(compressor_block_ratio_4_with_rejected_rows) { check_rejections(ds4::model::kCsaRatio); }
CASE(compressor_block_ratio_128_with_rejected_rows) { check_rejections(ds4::model::kHcaRatio); }
