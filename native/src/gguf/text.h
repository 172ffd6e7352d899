#pragma once
// Formats text of untrusted files for errors: escaped and shortened, so that a message is always valid UTF-8.

#include <string>
#include <string_view>

namespace ds4::gguf {

/// Returns whether every byte is printable ASCII, as keys and tensor names must be.
bool is_plain(std::string_view text);

/// Returns the text in single quotes. Bytes other than printable ASCII become \xNN, and text is cut after 80 bytes.
std::string quote(std::string_view text);

/// Returns a path as it is when it is valid UTF-8; else bytes other than printable ASCII become \xNN.
std::string show_path(const std::string& path);

}  // namespace ds4::gguf
