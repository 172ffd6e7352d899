#pragma once
// What makes two forwards the same graph.

#include <compare>
#include <cstdint>

#include "model/hyperparameters.h"

namespace ds4::graph {

/// Which rows get logits.
enum class Logits { none, last, all };

/// A forward of `rows` positions, described by what its graph depends on and nothing else.
struct Shape {
    int64_t rows;
    int64_t blocks4, blocks128;  // blocks completed inside the forward
    int64_t length4, length128;  // compressed rows read, bucketed
    Logits logits;

    auto operator<=>(const Shape&) const = default;
    int64_t blocks(int ratio) const { return ratio == 4 ? blocks4 : blocks128; }
    int64_t length(int ratio) const { return ratio == 4 ? length4 : length128; }
};

/// The shape of a forward of `rows` positions that begins at `position`.
Shape shape_of(const model::Hyperparameters& hp, int64_t position, int64_t rows, Logits logits);

/// Attention works on so many query rows at a time: its memory grows with rows times keys, and a window of W keys
/// is cut from W + kAttentionRows of them.
constexpr int64_t kAttentionRows = 64;

/// Most rows of a prompt chunk that ends at `end`: what depends on rows times length stays bounded.
int64_t chunk_rows(int64_t end);

}  // namespace ds4::graph
