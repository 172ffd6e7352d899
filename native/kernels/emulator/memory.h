#pragma once
// The memory of an emulated kernel: buffers of known sizes, with a record of the bytes that have been written.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds4::emulator {

/// An operation of a kernel that is invalid on a device, or whose result there is undefined. The text names the kernel,
/// the block and thread, the array and the index.
struct Fault : std::logic_error {
    using std::logic_error::logic_error;
};

/// The latest access to an element: its thread, its launch, and the number of barriers that the block had passed.
struct Touch {
    static constexpr int32_t kMany = -1;  // several threads of the block

    uint32_t launch = 0, barriers = 0;
    int32_t block = 0, thread = 0;
};

/// An array of a kernel, in global memory or in the shared memory of the running block.
class Region {
   public:
    /// Inputs have values from the start and must not be written. Outputs must be written completely.
    enum class Kind : uint8_t { input, output, scratch };
    Region(std::string name, std::byte* base, size_t bytes, Kind kind);

    const std::string& name() const { return name_; }
    std::byte* base() const { return base_; }
    size_t bytes() const { return bytes_; }
    bool holds(const std::byte* at) const { return at >= base_ && at < base_ + bytes_; }

    /// Check and record an access to `size` bytes at base + offset. Throw Fault.
    void check_read(int64_t offset, size_t size) const {
        check_inside(offset, size, "reads");
        if (kind_ == Kind::input) return;
        if (!all_written(&written_[offset], size)) unwritten(offset, size);
        note_read(offset, size);
    }
    void check_write(int64_t offset, size_t size) {
        check_inside(offset, size, "writes");
        if (kind_ == Kind::input) read_only(offset, size);
        std::memset(&written_[offset], 1, size);
        note_write(offset, size);
    }
    /// Checks and records an atomic operation.
    void check_atomic(int64_t offset, size_t size) const {
        check_inside(offset, size, "changes");
        if (kind_ == Kind::input) read_only(offset, size);
        if (!all_written(&written_[offset], size)) unwritten(offset, size);
    }
    /// Throws Fault unless every byte of an output was written.
    void require_written() const;

   private:
    void check_inside(int64_t offset, size_t size, const char* does) const {
        if (offset < 0 || offset + size > bytes_) outside(offset, size, does);
    }
    static bool all_written(const uint8_t* bytes, size_t size) {
        constexpr uint64_t kAll = 0x0101010101010101;
        if (size > sizeof kAll) return !std::memchr(bytes, 0, size);
        uint64_t found = kAll;
        std::memcpy(&found, bytes, size);
        return found == kAll;
    }
    /// Record an access. Throw Fault for a race: another thread accessed the element since the last barrier, and at
    /// least one of the two accesses is a write.
    void note_read(int64_t offset, size_t size) const;
    void note_write(int64_t offset, size_t size);
    [[noreturn]] void race(int64_t offset, size_t size, const char* does, const Touch& other, const char* did) const;
    [[noreturn]] void outside(int64_t offset, size_t size, const char* does) const;
    [[noreturn]] void unwritten(int64_t offset, size_t size) const;
    [[noreturn]] void read_only(int64_t offset, size_t size) const;
    std::string element(int64_t offset, size_t size) const;

    std::string name_;
    std::byte* base_;
    size_t bytes_;
    Kind kind_;
    std::vector<uint8_t> written_;
    mutable std::vector<Touch> reads_, writes_;  // by the place of an element's first byte
};

/// The global memory that a sequence of kernels may access.
class Memory {
   public:
    /// Adds an array of `count` values that kernels may only read. A null pointer adds nothing.
    template <typename T>
    void input(const char* name, const T* data, size_t count) {
        add(name, const_cast<T*>(data), count * sizeof(T), Region::Kind::input);
    }
    void input_bytes(const char* name, const void* data, size_t bytes) {
        add(name, const_cast<void*>(data), bytes, Region::Kind::input);
    }
    /// Adds an array without values, which kernels must write completely.
    template <typename T>
    void output(const char* name, T* data, size_t count) {
        add(name, data, count * sizeof(T), Region::Kind::output);
    }
    /// Adds an array without values, which kernels may leave unwritten.
    template <typename T>
    void scratch(const char* name, T* data, size_t count) {
        add(name, data, count * sizeof(T), Region::Kind::scratch);
    }
    /// Returns the array that contains the address `at`. Throws Fault if there is none.
    Region& find(const void* at);
    /// Throws Fault unless the kernels have written every byte of all outputs.
    void require_written() const;

   private:
    void add(const char* name, void* data, size_t bytes, Region::Kind kind);

    std::deque<Region> regions_;
};

}  // namespace ds4::emulator
