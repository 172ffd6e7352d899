#pragma once
// Reads the limits of this process's control groups (cgroups), version 1 or 2.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace ds4::machine {

/// Returns the number of processors that the CPU quotas of this process's group and its parents allow: the lowest of
/// them, or nothing when none has a quota. `root` is put before /proc and /sys.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Returns the bytes of memory that this process's group and its parents may still allocate: the lowest of them, or
/// nothing when none has a limit. Pages of files count as free, because the kernel drops them when memory gets short.
/// `root` is put before /proc and /sys.
std::optional<int64_t> memory_left(const std::filesystem::path& root = "/");

}  // namespace ds4::machine
