#pragma once
// Reads forward through a mapped file. Checks every read against the bytes left before anything is allocated.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "gguf/mapping.h"

namespace ds4::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little-endian, in place");

/// A position in a mapped file. The reading methods throw FormatError when the file ends too early; `where` names in
/// the error what is being read.
class Cursor {
   public:
    explicit Cursor(const Mapping& file) : file_(file) {}

    uint64_t offset() const { return offset_; }
    uint64_t left() const { return file_.size() - offset_; }

    /// Reads `count` elements of `size` bytes each, without a copy.
    std::span<const std::byte> bytes(uint64_t count, uint64_t size, const std::string& where);

    template <typename T>
    T read(const std::string& where) {
        T value;
        std::memcpy(&value, bytes(1, sizeof(T), where).data(), sizeof(T));
        return value;
    }

    /// Reads a GGUF string: a 64-bit length of at most `limit`, and as many bytes.
    std::string_view string(uint64_t limit, const std::string& where);

    [[noreturn]] void fail(const std::string& where, const std::string& what) const;

   private:
    const Mapping& file_;
    uint64_t offset_ = 0;
};

}  // namespace ds4::gguf
