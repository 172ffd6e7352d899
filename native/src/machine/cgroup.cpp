#include "machine/cgroup.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "machine/text.h"

namespace fs = std::filesystem;

namespace ds4::machine {
namespace {

/// Returns where the groups of cgroup version 2 lie: at the mount itself, or in its folder "unified" on a system that
/// has version 1 beside it.
fs::path unified_mount(const fs::path& mounts) {
    return read_text(mounts / "cgroup.controllers") ? mounts : mounts / "unified";
}

bool lists(const std::string& controllers, const std::string& controller) {
    return ("," + controllers + ",").find("," + controller + ",") != std::string::npos;
}

/// Appends the mount and every group from it down to `path`. A container may see its own group as the mount while
/// `path` is the host's: groups that do not exist have no files, and readers skip them.
void add_groups(std::vector<fs::path>& groups, fs::path at, const fs::path& path) {
    groups.push_back(at);
    for (const fs::path& part : path.relative_path()) {
        if (part == "..") return;  // outside of what this namespace shows
        groups.push_back(at /= part);
    }
}

/// Returns the folders of the groups that limit this process, in the hierarchy of `controller` (version 1) and in the
/// unified one (version 2). Lines of /proc/self/cgroup are "number:controllers:path", for version 2 "0::path".
std::vector<fs::path> groups(const fs::path& root, const std::string& controller) {
    const fs::path mounts = root / "sys/fs/cgroup";
    std::vector<fs::path> found;
    std::istringstream lines(read_text(root / "proc/self/cgroup").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (controllers.empty()) add_groups(found, unified_mount(mounts), path);
        if (lists(controllers, controller)) add_groups(found, mounts / controller, path);
    }
    return found;
}

/// Returns a group's CPU quota divided by its period. Version 2 has both in one file ("150000 100000", or "max
/// 100000"), version 1 in two.
std::optional<double> quota_of(const fs::path& group) {
    const auto both = read_text(group / "cpu.max");
    std::istringstream words(both ? *both
                                  : read_text(group / "cpu.cfs_quota_us").value_or("") + ' ' +
                                        read_text(group / "cpu.cfs_period_us").value_or(""));
    int64_t quota = 0, period = 0;
    if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
    return static_cast<double>(quota) / static_cast<double>(period);
}

/// Returns the memory limit of a group in bytes. Version 2 slows a group down at memory.high and kills a process of it
/// at memory.max, so the lower one counts.
std::optional<int64_t> limit_of(const fs::path& group) {
    std::optional<int64_t> least;
    for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
        const auto limit = number(read_text(group / name));
        if (limit) least = std::min(least.value_or(*limit), *limit);
    }
    return least;
}

/// Returns the bytes of a group's page cache. In version 1, fields without total_ leave out the groups inside; version
/// 2 always counts them.
int64_t page_cache(const fs::path& group) {
    const auto stat = read_text(group / "memory.stat");
    const bool first = field(stat, "total_inactive_file").has_value();
    const std::string prefix = first ? "total_" : "";
    return field(stat, prefix + "inactive_file").value_or(0) + field(stat, prefix + "active_file").value_or(0);
}

std::optional<int64_t> left_in(const fs::path& group) {
    const auto limit = limit_of(group);
    const auto current = read_text(group / "memory.current");
    const auto used = number(current ? current : read_text(group / "memory.usage_in_bytes"));
    if (!limit || !used) return std::nullopt;
    return *limit - std::clamp<int64_t>(*used - page_cache(group), 0, *limit);
}

template <typename F>
auto least(const std::vector<fs::path>& groups, F of) {
    decltype(of(fs::path())) least;
    for (const fs::path& group : groups) {
        const auto value = of(group);
        if (value) least = std::min(least.value_or(*value), *value);
    }
    return least;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) { return least(groups(root, "cpu"), quota_of); }

std::optional<int64_t> memory_left(const fs::path& root) { return least(groups(root, "memory"), left_in); }

}  // namespace ds4::machine
