#pragma once
// The first 24 bytes of a GGUF file, and hints for files of another format.

#include <cstdint>

#include "gguf/cursor.h"

namespace ds4::gguf {

/// The header of a GGUF file: its version, and the numbers of tensors and metadata keys.
struct Header {
    uint32_t version;  // 2 or 3, which have the same layout
    uint64_t tensors, keys;
};

/// Reads the header. Throws FormatError for another magic (saying what the file looks like), version or byte order.
Header read_header(Cursor& cursor, const Mapping& file);

/// Returns whether the bytes at `offset` are "GGUF".
bool has_magic(const Mapping& file, uint64_t offset);

}  // namespace ds4::gguf
