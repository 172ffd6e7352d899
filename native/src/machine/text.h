#pragma once
// The kernel's small text files.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ds4::machine {

/// A file's text; nothing when it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// The number that a text begins with; nothing for "max" and other words.
std::optional<int64_t> number(const std::optional<std::string>& text);

/// The number after `key` in a file of lines "key number" or "key: number kB", as it stands there.
std::optional<int64_t> field(const std::optional<std::string>& text, const std::string& key);

/// The numbers of a list such as "0-3,8"; empty for what is no list.
std::vector<int> cpu_list(const std::string& text);

}  // namespace ds4::machine
