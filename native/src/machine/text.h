#pragma once
// Reads small text files of /proc and /sys.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ds4::machine {

/// Returns the text of a file, or nothing when it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);

/// Returns the number that a text begins with, or nothing for other text such as "max".
std::optional<int64_t> number(const std::optional<std::string>& text);

/// Returns the number after `key` in lines "key number" or "key: number kB", without applying the unit; nothing when
/// the key is missing.
std::optional<int64_t> field(const std::optional<std::string>& text, const std::string& key);

/// Returns the numbers of a list such as "0-3,8"; empty when the text is not such a list.
std::vector<int> cpu_list(const std::string& text);

}  // namespace ds4::machine
