#pragma once
// The numbers that shape a DS4 target (docs/model.md section 1), read from GGUF metadata and checked.

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf.h"

namespace ds4::model {

/// Positions of one compressed row. Compressed sparse attention (CSA) chooses rows by the indexer; heavily compressed
/// attention (HCA) reads them all.
constexpr int kCsaRatio = 4, kHcaRatio = 128;

struct Hyperparameters {
    int64_t layers, hidden, vocab, context;
    int64_t heads, head_size, rope_size;
    int64_t query_rank, output_groups, output_rank;
    int64_t window;
    std::vector<int32_t> ratios;  // one per layer: 0 (window only), kCsaRatio or kHcaRatio
    float rope_base, compress_rope_base;
    bool yarn;
    float yarn_factor = 1, yarn_beta_fast = 32, yarn_beta_slow = 1;
    int64_t yarn_original_context = 0;
    int64_t index_heads = 0, index_size = 0, index_top_k = 0;  // 0 where no layer is CSA
    int64_t experts, experts_used, shared_experts, hash_layers;
    std::vector<int64_t> expert_widths;  // one per layer
    bool normalise_weights;
    float routed_scale;
    std::vector<float> clamp_routed, clamp_shared;  // one per layer; 0 is no clamp
    int64_t streams;                                // hyper-connections
    int32_t sinkhorn_iterations;
    float hc_epsilon, norm_epsilon;

    int64_t ratio_count(int ratio) const;
    /// Columns of the hyper-connection mix: pre, post and the combination matrix.
    int64_t mix_size() const { return (2 + streams) * streams; }
    /// Width of a compressor's carried rows: two halves for CSA, whose blocks overlap, one for HCA.
    static int64_t compress_width(int ratio, int64_t size) { return ratio == kCsaRatio ? 2 * size : size; }
};

/// Reads and validates the metadata of a target. Throws FormatError naming the key, with a hint for a drafter
/// (`dflash`, `*-dspark`, lucebox and ds4 support files), a vanilla MTP file, and a foreign architecture.
Hyperparameters read_hyperparameters(const gguf::File& file);

}  // namespace ds4::model
