#pragma once
// The five file formats ("contracts") of a DSpark drafter (docs/dspark.md section 1.2): recognises them, and has their
// tensor names.

#include <cstdint>
#include <string>

#include "gguf/gguf.h"

namespace ds4::drafter {

/// The file format of a drafter.
enum class Contract {
    dflash,       // llama.cpp
    lucebox,      // lucebox's dflash draft
    support,      // ds4's support file
    dspark_only,  // `--dspark-only`: the support file's tensors under the target's metadata
    relayout,     // tensor names with the prefix `dspark.`
};

/// Returns the name of a contract for users: "dflash", "lucebox", "ds4", "dspark-only" or "relayout".
std::string contract_name(Contract contract);

/// The tensor names of a drafter's file.
struct Names {
    Contract contract;
    int64_t stages;
    std::string architecture;  // the value of general.architecture, or empty
    std::string fusion, fusion_norm, output_norm;
    std::string hc_head;  // the prefix of "fn.weight", "base.weight" and "scale.weight"
    std::string markov_embedding, markov_output, confidence, confidence_bias;
    /// Returns the prefix of a stage's tensors: "blk.0.", for example.
    std::string stage(int64_t index) const;
};

/// Recognises the contract of a file, first by tensors and then by architecture. Throws FormatError for a vanilla MTP
/// block, a dflash drafter of another backbone, a target, and any other file, naming the tensors that were looked for.
Names recognise(const gguf::File& file);

}  // namespace ds4::drafter
