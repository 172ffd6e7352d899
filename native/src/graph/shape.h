#pragma once
// The shape of a forward: forwards of equal shape run the same graph.

#include <compare>
#include <cstdint>

#include "model/hyperparameters.h"
#include "state/state.h"

namespace ds4::graph {

/// The rows of a forward that get logits.
enum class Logits { none, last, all };

/// A forward of `rows` positions, described by what its graph depends on and nothing else.
struct Shape {
    int64_t rows;
    int64_t csa_blocks, hca_blocks;  // blocks completed inside the forward
    int64_t csa_length, hca_length;  // compressed rows read, bucketed
    Logits logits;
    int64_t features;  // last rows whose tapped streams are kept for a drafter

    auto operator<=>(const Shape&) const = default;
    int64_t blocks(int ratio) const { return ratio == model::kCsaRatio ? csa_blocks : hca_blocks; }
    int64_t length(int ratio) const { return ratio == model::kCsaRatio ? csa_length : hca_length; }
    /// Whether it is a prompt chunk, wider than any verify.
    bool wide() const { return rows > state::kMaxRows; }
};

/// The shape of a forward of `rows` positions that begins at `position`.
Shape shape_of(const model::Hyperparameters& hp, int64_t position, int64_t rows, Logits logits, int64_t features = 0);

/// Attention works on so many query rows at a time: its memory grows with rows times keys, and a window of W keys
/// is cut from W + kAttentionRows of them.
constexpr int64_t kAttentionRows = 64;

/// The most rows of a prompt chunk that ends at `end`: what depends on rows times length stays bounded.
int64_t chunk_rows(int64_t end);

}  // namespace ds4::graph
