#pragma once
// What the control groups around this process allow it, in both of their versions.

#include <filesystem>
#include <optional>

namespace ds4::machine {

/// Processors that the quotas of this process's group and of the groups around it allow, the least of them; nothing
/// where none is limited. `root` stands before /proc and /sys.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Bytes that this process's group and the groups around it may still take, the least of them; pages of files count as
/// free, because they are given up when memory gets short. Nothing where none is limited.
std::optional<int64_t> memory_left(const std::filesystem::path& root = "/");

}  // namespace ds4::machine
