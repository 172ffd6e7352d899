#pragma once
// Is this file a DS4 target at all? What people hand over instead, told apart by tensors and architecture.

#include <string>

#include "gguf/gguf.h"

namespace ds4::model {

/// Throws FormatError with a hint for a DSpark drafter, a file with nothing but MTP blocks, and a foreign architecture.
void require_target(const gguf::File& file);

/// A tensor that only a vanilla MTP block has, or nothing. Whole targets may hold such blocks too.
std::string find_mtp(const gguf::File& file);

/// Layers of the target: `block_count`, less the MTP blocks where those are counted in it and really are in the file.
int64_t count_layers(const gguf::File& file);

}  // namespace ds4::model
