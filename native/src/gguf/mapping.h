#pragma once
// A file mapped into memory for reading. mapping.cpp is the only file of the reader with system calls.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ds4/errors.h"

namespace ds4::gguf {

/// A read-only mapping of a whole file.
class Mapping {
   public:
    /// Maps the file. Throws FormatError when `path` is not a regular, readable, non-empty file.
    explicit Mapping(std::string path);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const std::string& path() const { return path_; }
    const std::byte* data() const { return data_; }
    uint64_t size() const { return size_; }
    std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
    /// Drops the whole pages in a range of mapped bytes from memory. The system reads them again when they are used.
    static void release(std::span<const std::byte> bytes);
    /// Returns a FormatError about this file: the path, then `what`.
    FormatError error(const std::string& what) const;

   private:
    std::string path_;
    const std::byte* data_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace ds4::gguf
