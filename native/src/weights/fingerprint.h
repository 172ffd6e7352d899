#pragma once
// What tells one file's weights from another's.

#include <cstdint>

#include "gguf/gguf.h"

namespace ds4::weights {

/// A hash of names, types, shapes and a sample of every tensor's bytes.
uint64_t fingerprint(const gguf::File& file);

}  // namespace ds4::weights
