#include "emulator/memory.h"

#include <algorithm>
#include <utility>

#include "emulator/block.h"

namespace ds4::emulator {

namespace {

/// Elements of four bytes or more have a place for every four bytes; a larger array of smaller ones is not watched.
constexpr size_t kWatched = 4;

bool before_barrier(const Touch& earlier, const Touch& now) {
    if (earlier.launch != now.launch) return false;
    if (earlier.block != now.block) return true;
    return earlier.barriers == now.barriers && earlier.thread != now.thread;
}

}  // namespace

Region::Region(std::string name, std::byte* base, size_t bytes, Kind kind)
    : name_(std::move(name)), base_(base), bytes_(bytes), kind_(kind), written_(kind == Kind::input ? 0 : bytes) {
    if (kind == Kind::input) return;
    reads_.resize(bytes / kWatched + 1);
    writes_.resize(bytes / kWatched + 1);
}

void Region::note_read(int64_t offset, size_t size) const {
    if (size < kWatched) return;
    const Touch now = current().touch();
    const Touch& written = writes_[offset / kWatched];
    if (before_barrier(written, now)) race(offset, size, "reads ", written, " wrote");
    Touch& read = reads_[offset / kWatched];
    const bool joins = read.launch == now.launch && read.block == now.block && read.barriers == now.barriers;
    const int32_t thread = joins && read.thread != now.thread ? Touch::kMany : now.thread;
    read = now;
    read.thread = thread;
}

void Region::note_write(int64_t offset, size_t size) {
    if (size < kWatched) return;
    const Touch now = current().touch();
    Touch& written = writes_[offset / kWatched];
    const Touch& read = reads_[offset / kWatched];
    if (before_barrier(written, now)) race(offset, size, "writes ", written, " wrote");
    if (before_barrier(read, now)) race(offset, size, "writes ", read, " read");
    written = now;
}

void Region::race(int64_t offset, size_t size, const char* does, const Touch& other, const char* did) const {
    const bool here = other.block == current().index();
    const std::string thread =
        other.thread == Touch::kMany ? "several threads" : "thread " + std::to_string(other.thread);
    fault(does + element(offset, size) + ", which " + thread + " of block " + std::to_string(other.block) + did +
          (here ? " since the last barrier: a race" : " in the same launch: blocks run in any order"));
}

void Region::require_written() const {
    if (kind_ != Kind::output) return;
    const auto gap = std::ranges::find(written_, 0);
    if (gap == written_.end()) return;
    throw Fault(name_ + ": byte " + std::to_string(gap - written_.begin()) + " of " + std::to_string(bytes_) +
                " was never written; a kernel must write its whole output");
}

std::string Region::element(int64_t offset, size_t size) const {
    const auto width = static_cast<int64_t>(size);
    const int64_t index = offset / width - (offset % width < 0 ? 1 : 0);
    std::string text = name_ + "[" + std::to_string(index) + "]";
    if (offset % width) text += " and a half";
    return text + " (elements of " + std::to_string(size) + " bytes)";
}

void Region::outside(int64_t offset, size_t size, const char* does) const {
    fault(std::string(does) + " " + element(offset, size) + ", but there are " + std::to_string(bytes_ / size) +
          ": out of bounds");
}

void Region::unwritten(int64_t offset, size_t size) const {
    fault("reads " + element(offset, size) + ", which nothing wrote");
}

void Region::read_only(int64_t offset, size_t size) const {
    fault("writes " + element(offset, size) + ", which is an input");
}

void Memory::add(const char* name, void* data, size_t bytes, Region::Kind kind) {
    if (data && bytes) regions_.emplace_back(name, static_cast<std::byte*>(data), bytes, kind);
}

Region& Memory::find(const void* at) {
    for (Region& r : regions_) {
        if (r.holds(static_cast<const std::byte*>(at))) return r;
    }
    fault(at ? "uses a pointer that is in none of the kernel's buffers" : "uses a null pointer");
}

void Memory::require_written() const {
    for (const Region& r : regions_) r.require_written();
}

}  // namespace ds4::emulator
