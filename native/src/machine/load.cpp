#include "machine/load.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "machine/text.h"

namespace ds4::machine {
namespace {

/// The part of a core that other processes may use before the core counts as theirs, since something always runs now
/// and then.
constexpr double kNegligible = 0.4;
/// Seconds between two measurements. /proc/stat counts in hundredths of a second.
constexpr double kInterval = 0.25;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Returns the processor time of all threads of this process, in seconds.
double own_seconds() {
    timespec spent{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

/// Sums the busy ticks of `cpus` in the text of /proc/stat. A line is "cpu3 user nice system idle iowait irq softirq
/// steal ..."; the fourth and fifth numbers are idle time. Stolen time counts as busy: another virtual machine has the
/// core.
int64_t busy_ticks(const std::string& stat, const std::set<int>& cpus) {
    int64_t busy = 0;
    std::istringstream lines(stat);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        const auto cpu = name.starts_with("cpu") ? number(name.substr(3)) : std::nullopt;
        if (!cpu || !cpus.contains(static_cast<int>(*cpu))) continue;
        int64_t ticks = 0;
        for (int column = 0; column < 8 && words >> ticks; column++) busy += column == 3 || column == 4 ? 0 : ticks;
    }
    return busy;
}

}  // namespace

CpuUsage usage(const std::vector<int>& cpus, const std::filesystem::path& root) {
    const auto stat = read_text(root / "proc/stat");
    if (!stat) return {now(), 0, 0};
    const int64_t ticks = busy_ticks(*stat, {cpus.begin(), cpus.end()});
    return {now(), static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK)), own_seconds()};
}

int free_cores(int cores, const CpuUsage& before, const CpuUsage& after) {
    const double others = (after.busy - before.busy) - (after.own - before.own);
    const double left = cores - std::max(0.0, others) / (after.time - before.time);
    return std::clamp(static_cast<int>(std::floor(left + kNegligible)), 1, cores);
}

CpuLoad::CpuLoad(const Topology& topology, std::filesystem::path root)
    : root_(std::move(root)),
      cpus_(topology.cpus()),
      cores_(topology.cores()),
      free_(cores_),
      last_(usage(cpus_, root_)) {}

int CpuLoad::free_cores() {
    const std::scoped_lock lock(mutex_);
    if (now() - last_.time < kInterval) return free_;
    const CpuUsage latest = usage(cpus_, root_);
    free_ = machine::free_cores(cores_, last_, latest);
    last_ = latest;
    return free_;
}

}  // namespace ds4::machine
