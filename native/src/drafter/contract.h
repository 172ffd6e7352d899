#pragma once
// The five ways a DSpark drafter is stored (docs/dspark.md section 1.2): which one a file follows, and its names.

#include <string>

#include "gguf/gguf.h"

namespace ds4::drafter {

enum class Contract {
    dflash,       // llama.cpp
    lucebox,      // lucebox's dflash draft
    support,      // ds4's support file
    dspark_only,  // `--dspark-only`: the support file's tensors under the target's metadata
    relayout,     // `dspark.` prefix
};

/// The name people know a contract by: "dflash", "lucebox", "ds4", "dspark-only", "relayout".
std::string contract_name(Contract contract);

/// Where a contract keeps each tensor.
struct Names {
    Contract contract;
    int64_t stages;
    std::string architecture;  // as the file says it, or empty
    std::string fusion, fusion_norm, output_norm;
    std::string hc_head;  // before "fn.weight", "base.weight", "scale.weight"
    std::string markov_embedding, markov_output, confidence, confidence_bias;
    /// Prefix of a stage's tensors, "blk.0." for example.
    std::string stage(int64_t index) const;
};

/// Recognises the contract by tensors first. Throws FormatError for a vanilla MTP block, an unsupported dflash
/// backbone, a target, and a file that is none of these, naming the tensors that were looked for.
Names recognise(const gguf::File& file);

}  // namespace ds4::drafter
