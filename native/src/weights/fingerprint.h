#pragma once
// Identifies the weights of a file.

#include <cstdint>

#include "gguf/gguf.h"

namespace ds4::weights {

/// Returns a hash (64-bit FNV-1a) of the name, type, shape and first 64 bytes of every tensor.
uint64_t fingerprint(const gguf::File& file);

}  // namespace ds4::weights
