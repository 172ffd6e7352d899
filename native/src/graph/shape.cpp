#include "graph/shape.h"

#include <algorithm>

namespace ds4::graph {

using model::kCsaRatio;
using model::kHcaRatio;

Shape shape_of(const model::Hyperparameters& hp, int64_t position, int64_t rows, Logits logits, int64_t features) {
    Shape s{rows, 0, 0, 0, 0, logits, features};
    const int64_t end = position + rows;
    if (hp.ratio_count(kCsaRatio)) {
        s.csa_blocks = end / kCsaRatio - position / kCsaRatio;
        s.csa_length = state::bucket(end / kCsaRatio);
    }
    if (hp.ratio_count(kHcaRatio)) {
        s.hca_blocks = end / kHcaRatio - position / kHcaRatio;
        s.hca_length = state::bucket(end / kHcaRatio);
    }
    return s;
}

int64_t chunk_rows(int64_t end) {
    constexpr int64_t kWidest = 512, kMaskEntries = 32 << 20;  // 64 MiB of F16 mask
    const int64_t fitting = kMaskEntries / std::max<int64_t>(end / kCsaRatio, 1) / kAttentionRows * kAttentionRows;
    return std::clamp(fitting, kAttentionRows, kWidest);
}

}  // namespace ds4::graph
