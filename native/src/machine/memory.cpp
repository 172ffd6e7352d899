#include "machine/memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "machine/cgroup.h"
#include "machine/text.h"

namespace ds4::machine {
namespace {

int64_t system_available(const std::filesystem::path& root) {
    const auto kilobytes = field(read_text(root / "proc/meminfo"), "MemAvailable");
    if (kilobytes) return *kilobytes * 1024;
    return static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

size_t available_memory(const std::filesystem::path& root) {
    const int64_t system = system_available(root);
    return static_cast<size_t>(std::min(system, memory_left(root).value_or(system)));
}

}  // namespace ds4::machine
