#pragma once
// Reads how much host memory is available.

#include <cstddef>
#include <filesystem>

namespace ds4::machine {

/// Returns the bytes of host memory that this process can allocate without swapping: the lower of what the system
/// (MemAvailable) and the control groups have left. `root` is put before /proc and /sys.
size_t available_memory(const std::filesystem::path& root = "/");

}  // namespace ds4::machine
