#pragma once
// Reads forward through a mapped file; every step is checked against what is left before anything is allocated.

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "gguf/mapping.h"

namespace ds4::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little-endian, in place");

class Cursor {
   public:
    explicit Cursor(const Mapping& file) : file_(file) {}

    uint64_t offset() const { return offset_; }
    uint64_t left() const { return file_.size() - offset_; }

    /// `count` elements of `size` bytes; `where` names what is being read in the error.
    std::span<const std::byte> bytes(uint64_t count, uint64_t size, const std::string& where);

    template <typename T>
    T read(const std::string& where) {
        T value;
        std::memcpy(&value, bytes(1, sizeof(T), where).data(), sizeof(T));
        return value;
    }

    /// A length of 64 bits and as many bytes, at most `limit`.
    std::string_view string(uint64_t limit, const std::string& where);

    [[noreturn]] void fail(const std::string& where, const std::string& what) const;

   private:
    const Mapping& file_;
    uint64_t offset_ = 0;
};

}  // namespace ds4::gguf
