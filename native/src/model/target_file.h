#pragma once
// Tells DS4 targets from other files by tensors and architecture.

#include <cstdint>
#include <string>

#include "gguf/gguf.h"

namespace ds4::model {

/// Throws FormatError with a hint when the file is a DSpark drafter, has only MTP blocks, or is of another
/// architecture.
void require_target(const gguf::File& file);

/// Returns the name of a tensor that only a vanilla MTP block has, or an empty string. A whole target may have MTP
/// blocks, too.
std::string find_mtp(const gguf::File& file);

/// Returns the number of layers of the target: `block_count`, minus the MTP blocks when it counts them and the file has
/// them. Throws FormatError for a count out of range.
int64_t count_layers(const gguf::File& file);

}  // namespace ds4::model
