#include <vector>

#include "ops/cpu/nodes.h"

namespace ds4::ops::cpu {
namespace {

/// Columns that are one piece of work.
constexpr int64_t kColumns = 64;

/// Rows of the carry ring and then of this forward.
struct Joined {
    const ggml_tensor *ring, *rows;

    const float* at(int64_t i) const { return i < ring->ne[1] ? row(ring, i) : row(rows, i - ring->ne[1]); }
};

/// A block's slots, without those that are missing.
struct Slots {
    std::vector<const float*> values, scores;

    void add(const Joined& kv, const Joined& score, int32_t index, int64_t column) {
        values.push_back(kv.at(index) + column);
        scores.push_back(score.at(index) + column);
    }
    void clear() { values.clear(), scores.clear(); }
};

/// Pieces of all blocks are shared out in one sequence.
void mean_of_slots(ggml_tensor* out, int ith, int nth, void*) {
    const Joined kv{out->src[0], out->src[2]}, score{out->src[1], out->src[3]};
    const ggml_tensor *own = out->src[4], *previous = out->src[5], *missing = out->src[6];
    const int64_t size = out->ne[0], blocks = out->ne[1], pieces = (size + kColumns - 1) / kColumns,
                  ratio = own->ne[0] / blocks;
    const Part part(pieces * blocks, ith, nth);
    thread_local Slots slots;
    for (int64_t piece = part.first; piece < part.last; piece++) {
        const int64_t block = piece / pieces, column = piece % pieces * kColumns;
        slots.clear();
        for (int64_t k = 0; previous && k < ratio; k++) {
            if (row(missing, k, block)[0] < 0) continue;
            slots.add(kv, score, element<int32_t>(previous, block * ratio + k, 0), column);
        }
        for (int64_t k = 0; k < ratio; k++) {
            slots.add(kv, score, element<int32_t>(own, block * ratio + k, 0), (previous ? size : 0) + column);
        }
        kernels().softmax_mean(slots.values.data(), slots.scores.data(), std::ssize(slots.values),
                               std::min(kColumns, size - column), row<float>(out, block) + column);
    }
}

}  // namespace

ggml_tensor* compress(const Build& b, const CompressInput& in) {
    return node(b, GGML_TYPE_F32, {in.size, in.blocks},
                {in.ring_kv, in.ring_score, in.kv, in.score, in.own, in.previous, in.missing}, mean_of_slots);
}

}  // namespace ds4::ops::cpu
