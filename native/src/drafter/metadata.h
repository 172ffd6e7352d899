#pragma once
// What the metadata of a drafter says, however its contract spells the keys (docs/dspark.md sections 1.2 and 1.3).

#include <cstdint>
#include <optional>
#include <vector>

#include "drafter/contract.h"

namespace ds4::drafter {

struct Metadata {
    int64_t block;              // proposals of one draft
    bool from_anchor;           // whether the anchor's own row predicts
    int64_t noise;              // id that fills the block after the anchor
    std::vector<int64_t> taps;  // counted from 0, strictly increasing
    std::optional<int64_t> rank, experts, confidence_width;
    std::optional<bool> confidence;
};

/// Every spelling of a number that is in the file must say the same. Throws FormatError naming the key.
Metadata read_metadata(const gguf::File& file, const Names& names);

}  // namespace ds4::drafter
