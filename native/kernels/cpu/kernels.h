#pragma once
// The CPU's kernels: matrix products of packed weights with one to many rows, and the ops beside them.
//
// A product reads each weight once for all rows, and computes every output by itself, in one order: its bits depend on
// its row and its weights alone, not on how many rows are computed with it, where it stands among them, or on threads.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ds4::kernels {

/// Outputs are computed in tiles: so many rows of a matrix lie interleaved (see packing.h).
constexpr int64_t kTile = 16;

/// Storage formats of weights: the ggml types for which there are CPU kernels.
enum class Format : uint8_t { f32, f16, bf16, q8_0, q4_0, mxfp4, q2_k, q4_k, q5_k, q6_k, iq2_xxs, iq3_xxs };

/// A packed matrix: `rows` outputs of `columns` inputs each.
struct Matrix {
    Format format;
    int64_t columns, rows;
    const void* data;
};

/// Rows as a product reads them: F32 for the formats of floats, quantised for the others. Row r lies at
/// data + index[r] * stride; without an index, its place is r.
struct Rows {
    const void* data;
    size_t stride;  // bytes
    int64_t count;
    const int32_t* index = nullptr;
};

/// Rows of outputs, addressed as in Rows. With a scale for each row, so many times the product is added to what is
/// there.
struct Outputs {
    float* data;
    int64_t stride;  // floats
    const int32_t* index = nullptr;
    const float* scale = nullptr;
};

/// A query's heads and the keys that it sees, which are the values, too.
struct AttentionQuery {
    const float* query;        // [heads][size]
    const float* const* keys;  // [count], of `size` each
    int64_t size, count;
    float scale;
    const float* sinks;  // [heads]
    float* scratch;      // [heads of a call][count]
    float* out;          // [heads][size]
};

/// A query of the indexer. Heads are filled up with zeros to a multiple of kTile.
struct IndexQuery {
    const float* query;    // [size][heads]
    const float* weights;  // [heads]
    int64_t size, heads;   // size is a multiple of kTile
    float* scratch;        // [2 * (size + heads)]
};

/// Keys of the indexer: F16 (`half`) or F32, `stride` bytes apart.
struct IndexKeys {
    const void* data;
    size_t stride;
    bool half;
};

/// Implementations for one kind of processor.
struct Kernels {
    const char* name;
    /// Quantises a row of `columns` (a multiple of 32) floats to quantised_bytes(columns) bytes.
    void (*quantise)(const float* row, int64_t columns, void* out);
    /// Outputs of the tiles [first, last).
    void (*matmul)(const Matrix& matrix, const Rows& rows, int64_t first, int64_t last, const Outputs& out);
    /// Heads [first, last).
    void (*attend)(const AttentionQuery& query, int64_t first, int64_t last);
    /// Scores of the keys [first, last): the sum over heads of weight * max(dot, 0); out [keys].
    void (*index_scores)(const IndexQuery& query, const IndexKeys& keys, int64_t first, int64_t last, float* out);
    /// silu(min(gate, clamp)) * clip(up, -clamp, clamp), in place of gate.
    void (*swiglu)(float* gate, const float* up, int64_t count, float clamp);
    /// The sum of x^2.
    float (*squares)(const float* x, int64_t count);
    /// Sum of weights[s] * x[s] for each column.
    void (*weighted_sum)(const float* const* x, const float* weights, int64_t sources, int64_t count, float* out);
    /// RMS norm of a row, with a weight or null; out may be x.
    void (*rms_norm)(const float* x, const float* weight, int64_t count, float epsilon, float* out);
    /// The mean of slots' values for each column, weighted by the softmax of their scores; at least one slot.
    void (*softmax_mean)(const float* const* values, const float* const* scores, int64_t slots, int64_t count,
                         float* out);
};

/// Whether a format's products take quantised rows.
bool takes_quantised(Format format);

/// Bytes of a quantised row: int8 values, then a float scale for each 32 of them, then the int32 sum of each 16.
constexpr size_t quantised_bytes(int64_t columns) {
    return static_cast<size_t>(columns + columns / 32 * 4 + columns / 16 * 4);
}

constexpr int64_t tiles(int64_t rows) { return (rows + kTile - 1) / kTile; }

/// All implementations that this processor runs, the fastest first; never empty.
std::span<const Kernels* const> available();

}  // namespace ds4::kernels
