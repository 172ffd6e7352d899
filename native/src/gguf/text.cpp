#include "gguf/text.h"

#include <algorithm>

namespace ds4::gguf {

namespace {

constexpr size_t kShown = 80;

bool is_plain_byte(char c) { return c >= 0x20 && c <= 0x7e; }

std::string escape(std::string_view text) {
    constexpr char digits[] = "0123456789abcdef";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (is_plain_byte(c)) {
            out += c;
        } else {
            out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return out;
}

/// Returns the length in bytes of the UTF-8 sequence that `text` begins with, or 0 when it begins with none.
size_t sequence_length(std::string_view text) {
    const auto lead = static_cast<unsigned char>(text[0]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || length > text.size()) return 0;
    const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    if (!std::ranges::all_of(text.substr(1, length - 1), continues)) return 0;
    const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0;
    // Rejects overlong forms, surrogates and code points above U+10FFFF.
    const bool bad = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0) ||
                     (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90);
    return bad ? 0 : length;
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const size_t length = sequence_length(text);
        if (length == 0) return false;
        text.remove_prefix(length);
    }
    return true;
}

}  // namespace

bool is_plain(std::string_view text) { return std::ranges::all_of(text, is_plain_byte); }

std::string quote(std::string_view text) {
    const bool cut = text.size() > kShown;
    return "'" + escape(text.substr(0, kShown)) + (cut ? "...'" : "'");
}

std::string show_path(const std::string& path) { return is_utf8(path) ? path : escape(path); }

}  // namespace ds4::gguf
