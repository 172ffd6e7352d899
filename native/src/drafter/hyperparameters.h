#pragma once
// The hyperparameters of a DSpark drafter, of any contract (docs/dspark.md section 1).

#include <cstdint>
#include <vector>

#include "drafter/contract.h"
#include "model/hyperparameters.h"

namespace ds4::drafter {

/// The hyperparameters of a drafter.
struct Hyperparameters {
    Contract contract;
    int64_t block;              // number of proposals of one draft
    bool from_anchor;           // whether the anchor's row predicts; else the block has one row more
    int64_t noise;              // token id that fills the block after the anchor
    std::vector<int64_t> taps;  // increasing indices of the target layers whose outputs are features
    int64_t rank;               // rank of the Markov head; 0 when there is none
    bool confidence;            // whether there is a confidence head
    bool confidence_markov;     // whether that head also reads the Markov row of the previous token
    /// The stages as layers of a model: `layers` is their number, every ratio is 0, and there are no hash layers.
    /// Numbers that the file does not have are those of the target.
    model::Hyperparameters stages;

    /// Returns the number of rows of a draft block.
    int64_t rows() const { return block + (from_anchor ? 0 : 1); }
};

/// Reads the hyperparameters from metadata and from the shapes of tensors; `target` gives the numbers that the file
/// does not have. Throws FormatError for a file that contradicts itself. Does not check that drafter and target fit.
Hyperparameters read_hyperparameters(const gguf::File& file, const Names& names, const model::Hyperparameters& target);

/// Returns the last `stages` of `layers`, the values of a target's layers. When there are fewer, the first value is
/// repeated in front.
std::vector<float> values_of_last_layers(const std::vector<float>& layers, int64_t stages);

/// Throws PairError listing everything that does not fit the target.
void require_pair(const gguf::File& file, const Hyperparameters& hp, const model::Hyperparameters& target);

}  // namespace ds4::drafter
