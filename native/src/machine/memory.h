#pragma once
// How much memory there is to take.

#include <cstddef>
#include <filesystem>

namespace ds4::machine {

/// Bytes that can be taken without others having to give theirs up, as far as the system and the control groups around
/// this process say. `root` stands before /proc and /sys.
size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace ds4::machine
