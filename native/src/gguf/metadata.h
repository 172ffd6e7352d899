#pragma once
// Reads the metadata section of a GGUF file.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/cursor.h"
#include "gguf/gguf.h"

namespace ds4::gguf {

using Metadata = std::vector<std::pair<std::string, Value>>;

/// Reads `count` keys with their values. Throws FormatError naming the key that is malformed or there twice.
Metadata read_metadata(Cursor& cursor, uint64_t count);

/// Returns the value of `key`, or null.
const Value* find_value(const Metadata& metadata, std::string_view key);

/// Describes a value for an error: "the string 'x'", "an array of 3 integers", "the integer 7".
std::string describe(const Value& value);

}  // namespace ds4::gguf
