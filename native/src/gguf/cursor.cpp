#include "gguf/cursor.h"

#include "gguf/checked.h"

namespace ds4::gguf {

std::span<const std::byte> Cursor::bytes(uint64_t count, uint64_t size, const std::string& where) {
    const auto total = checked_mul(count, size);
    if (!total || *total > left()) {
        const std::string expected = count == 1 ? std::to_string(size) + " bytes"
                                                : std::to_string(count) + " x " + std::to_string(size) + " bytes";
        fail(where, "wanted " + expected + ", found " + std::to_string(left()) +
                        " before the end; the file is cut short or damaged, download it again");
    }
    const auto found = file_.bytes().subspan(static_cast<size_t>(offset_), static_cast<size_t>(*total));
    offset_ += *total;
    return found;
}

std::string_view Cursor::string(uint64_t limit, const std::string& where) {
    const auto length = read<uint64_t>(where);
    if (length > limit) {
        fail(where, "a string of " + std::to_string(length) + " bytes, wanted at most " + std::to_string(limit));
    }
    const auto found = bytes(length, 1, where);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
}

void Cursor::fail(const std::string& where, const std::string& what) const {
    throw file_.error(where + " (at byte " + std::to_string(offset_) + "): " + what);
}

}  // namespace ds4::gguf
