#pragma once
// Text of errors: what an untrusted file holds is shown escaped and cut, so that a message is always valid UTF-8.

#include <string>
#include <string_view>

namespace ds4::gguf {

/// Whether every byte is printable ASCII, as keys and tensor names must be.
bool is_plain(std::string_view text);

/// In single quotes, other bytes than printable ASCII as \xNN, cut after 80 bytes.
std::string quote(std::string_view text);

/// A path as it is; bytes outside of printable ASCII are escaped when the whole is not valid UTF-8.
std::string show_path(const std::string& path);

}  // namespace ds4::gguf
