#include "graph/shape.h"

#include <algorithm>

namespace ds4::graph {

Shape shape_of(const model::Hyperparameters& hp, int64_t position, int64_t rows, Logits logits, int64_t features) {
    Shape s{rows, 0, 0, 0, 0, logits, features};
    const int64_t end = position + rows;
    if (hp.ratio_count(4)) {
        s.blocks4 = end / 4 - position / 4;
        s.length4 = state::bucket(end / 4);
    }
    if (hp.ratio_count(128)) {
        s.blocks128 = end / 128 - position / 128;
        s.length128 = state::bucket(end / 128);
    }
    return s;
}

int64_t chunk_rows(int64_t end) {
    constexpr int64_t kWidest = 512, kMaskEntries = 32 << 20;  // 64 MiB of F16 mask
    const int64_t fitting = kMaskEntries / std::max<int64_t>(end / 4, 1) / kAttentionRows * kAttentionRows;
    return std::clamp(fitting, kAttentionRows, kWidest);
}

}  // namespace ds4::graph
