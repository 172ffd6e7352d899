#pragma once
// The hyperparameters of a DS4 target (docs/model.md section 1), read from GGUF metadata and checked.

#include <cstdint>
#include <vector>

#include "gguf/gguf.h"

namespace ds4::model {

/// Compression ratios: positions of one compressed row. Compressed sparse attention (CSA) chooses rows by the indexer;
/// heavily compressed attention (HCA) reads them all.
constexpr int kCsaRatio = 4, kHcaRatio = 128;

/// The hyperparameters of a target, or of the stages of a drafter. Sizes are numbers of elements.
struct Hyperparameters {
    int64_t layers, hidden, vocab, context;
    int64_t heads, head_size, rope_size;
    int64_t query_rank, output_groups, output_rank;
    int64_t window;
    std::vector<int32_t> ratios;  // compression ratio of each layer: 0 (window only), kCsaRatio or kHcaRatio
    float rope_base, compress_rope_base;
    bool yarn;
    float yarn_factor = 1, yarn_beta_fast = 32, yarn_beta_slow = 1;
    int64_t yarn_original_context = 0;
    int64_t index_heads = 0, index_size = 0, index_top_k = 0;  // 0 when no layer is CSA
    int64_t experts, experts_used, shared_experts, hash_layers;
    std::vector<int64_t> expert_widths;  // intermediate size of each layer
    bool normalise_weights;
    float routed_scale;
    std::vector<float> clamp_routed, clamp_shared;  // SwiGLU clamp of each layer; 0 is none
    int64_t streams;                                // residual streams of the hyper-connections
    int32_t sinkhorn_iterations;
    float hc_epsilon, norm_epsilon;

    /// Returns the number of layers with this compression ratio.
    int64_t ratio_count(int ratio) const;
    /// Returns the columns of the hyper-connection mix: `streams` for pre, `streams` for post, and streams^2 for the
    /// combination matrix.
    int64_t mix_size() const { return (2 + streams) * streams; }
    /// Returns the width of the rows that a compressor of heads of `size` carries: two halves for CSA, whose blocks
    /// overlap, one for HCA.
    static int64_t compress_width(int ratio, int64_t size) { return ratio == kCsaRatio ? 2 * size : size; }
};

/// Reads and validates the metadata of a target. Throws FormatError naming the key, and with a hint for files that are
/// no target: drafters (`dflash`, `*-dspark`, lucebox and ds4 support files), files with only an MTP block, and other
/// architectures.
Hyperparameters read_hyperparameters(const gguf::File& file);

}  // namespace ds4::model
