#pragma once
// The numbers that shape a DSpark drafter, whatever contract its file follows (docs/dspark.md section 1).

#include <cstdint>
#include <string>
#include <vector>

#include "drafter/contract.h"
#include "model/hyperparameters.h"

namespace ds4::drafter {

struct Hyperparameters {
    Contract contract;
    int64_t block;              // proposals of one draft; rows of the block where the anchor's own row predicts
    bool from_anchor;           // false: the block has one row more, and the anchor's predicts nothing
    int64_t noise;              // id that fills the block after the anchor
    std::vector<int64_t> taps;  // target layers, counted from 0, whose OUTPUT is a feature; in order
    int64_t rank;               // of the Markov head; 0 is none
    bool confidence;            // whether there is a confidence head
    bool confidence_markov;     // whether it also reads the previous token's Markov row
    /// The stages as layers: `layers` is their number, every ratio 0, no hash layer; what the file does not say is the
    /// target's.
    model::Hyperparameters stages;

    /// Rows of a draft block.
    int64_t rows() const { return block + (from_anchor ? 0 : 1); }
};

/// Reads what a drafter says of itself, in metadata and in the shapes of its tensors; `target` stands in for what it
/// does not say. Throws FormatError for a file that contradicts itself. Whether the two fit is not looked at.
Hyperparameters read_hyperparameters(const gguf::File& file, const Names& names, const model::Hyperparameters& target);

/// The values of the last layers, one a stage; where the layers are fewer, the first one's stands before them.
std::vector<float> of_last_layers(const std::vector<float>& layers, int64_t stages);

/// Throws PairError with everything that does not fit the target.
void require_pair(const gguf::File& file, const Hyperparameters& hp, const model::Hyperparameters& target);

}  // namespace ds4::drafter
