#pragma once
// Reads the metadata of a drafter, in the spellings of all contracts (docs/dspark.md sections 1.2 and 1.3).

#include <cstdint>
#include <optional>
#include <vector>

#include "drafter/contract.h"

namespace ds4::drafter {

/// The numbers of a drafter that metadata have; nullopt for those that the file does not state.
struct Metadata {
    int64_t block;              // number of proposals of one draft
    bool from_anchor;           // whether the anchor's row predicts
    int64_t noise;              // token id that fills the block after the anchor
    std::vector<int64_t> taps;  // indices of target layers, strictly increasing
    std::optional<int64_t> rank, experts, confidence_width;
    std::optional<bool> confidence;
};

/// Reads the metadata. Throws FormatError naming the key when a required number is missing or out of range, or when two
/// spellings of a number differ.
Metadata read_metadata(const gguf::File& file, const Names& names);

}  // namespace ds4::drafter
