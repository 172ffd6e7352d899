#pragma once
// The first 24 bytes of a GGUF file, and what a file that has others looks like.

#include "gguf/cursor.h"

namespace ds4::gguf {

struct Header {
    uint32_t version;  // 2 or 3: the same layout
    uint64_t tensors, keys;
};

/// Throws FormatError for another magic (saying what the file looks like), version or byte order.
Header read_header(Cursor& cursor, const Mapping& file);

/// Whether "GGUF" stands at `offset`.
bool has_magic(const Mapping& file, uint64_t offset);

}  // namespace ds4::gguf
