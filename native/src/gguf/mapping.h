#pragma once
// A file mapped into memory for reading. The only file of the reader that knows the operating system is mapping.cpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "ds4/errors.h"

namespace ds4::gguf {

class Mapping {
   public:
    /// Throws FormatError where `path` is not a regular, readable, non-empty file.
    explicit Mapping(std::string path);
    ~Mapping();
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    const std::string& path() const { return path_; }
    const std::byte* data() const { return data_; }
    uint64_t size() const { return size_; }
    std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(size_)}; }
    /// Lets go of the whole pages in a range of mapped bytes, which are read again where they are needed.
    static void release(std::span<const std::byte> bytes);
    /// An error of this file: `what` after the path.
    FormatError error(const std::string& what) const;

   private:
    std::string path_;
    const std::byte* data_ = nullptr;
    uint64_t size_ = 0;
};

}  // namespace ds4::gguf
