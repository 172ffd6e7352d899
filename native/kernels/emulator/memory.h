#pragma once
// Memory as an emulated kernel sees it: buffers of known sizes, and which of their bytes have been written.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace ds4::emulator {

/// A kernel did what no device allows, or what would give chance values there. The text names the kernel, the block and
/// thread, the array and the index.
struct Fault : std::logic_error {
    using std::logic_error::logic_error;
};

/// The thread that touched an element last, and when: the launch, and how often its block had met at a barrier.
struct Touch {
    static constexpr int32_t kMany = -1;  // several threads of the block

    uint32_t launch = 0, barriers = 0;
    int32_t block = 0, thread = 0;
};

/// An array of a kernel: global memory, or shared memory of the running block.
class Region {
   public:
    /// Inputs hold values from the start and may not be written; outputs are to be written whole.
    enum class Kind : uint8_t { input, output, scratch };
    Region(std::string name, std::byte* base, size_t bytes, Kind kind);

    const std::string& name() const { return name_; }
    std::byte* base() const { return base_; }
    size_t bytes() const { return bytes_; }
    bool holds(const std::byte* at) const { return at >= base_ && at < base_ + bytes_; }

    /// Checks an access to `size` bytes at base + offset. Throws Fault.
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
    /// Throw Fault where another thread touches the element, one of both writes, and no barrier is between.
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

/// The global memory that some kernels, run one after another, may touch.
class Memory {
   public:
    /// Holds `count` values already; only read. A null pointer adds nothing.
    template <typename T>
    void input(const char* name, const T* data, size_t count) {
        add(name, const_cast<T*>(data), count * sizeof(T), Region::Kind::input);
    }
    void input_bytes(const char* name, const void* data, size_t bytes) {
        add(name, const_cast<void*>(data), bytes, Region::Kind::input);
    }
    /// Holds nothing yet.
    template <typename T>
    void output(const char* name, T* data, size_t count) {
        add(name, data, count * sizeof(T), Region::Kind::output);
    }
    /// Holds nothing yet, and need not be written.
    template <typename T>
    void scratch(const char* name, T* data, size_t count) {
        add(name, data, count * sizeof(T), Region::Kind::scratch);
    }
    /// The buffer that holds `at`. Throws Fault.
    Region& find(const void* at);
    /// Throws Fault unless the kernels wrote all outputs, every byte of them.
    void require_written() const;

   private:
    void add(const char* name, void* data, size_t bytes, Region::Kind kind);

    std::deque<Region> regions_;
};

}  // namespace ds4::emulator
