#include "machine/topology.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "machine/cgroup.h"
#include "machine/text.h"

namespace fs = std::filesystem;

namespace ds4::machine {
namespace {

std::vector<int> all_cpus() {
    std::vector<int> cpus(std::max(1u, std::thread::hardware_concurrency()));
    for (size_t i = 0; i < cpus.size(); i++) cpus[i] = static_cast<int>(i);
    return cpus;
}

/// Returns the id of the core of a processor: the lowest id among the processors of the core.
int core_of(int cpu, const fs::path& root) {
    const fs::path folder = root / ("sys/devices/system/cpu/cpu" + std::to_string(cpu)) / "topology";
    const auto siblings = cpu_list(read_text(folder / "thread_siblings_list").value_or(""));
    return siblings.empty() ? cpu : siblings.front();
}

Node node_at(const fs::path& folder, const std::set<int>& allowed, const fs::path& root) {
    const std::string name = folder.filename().string(), number = name.substr(std::string("node").size());
    Node node{std::stoi(number), 0, {}};
    const std::string information = read_text(folder / "meminfo").value_or("");  // "Node 0 MemTotal:   16303428 kB"
    const size_t total = information.find("MemTotal:");
    if (total != std::string::npos) node.memory = field(information.substr(total), "MemTotal").value_or(0) * 1024;
    for (int cpu : cpu_list(read_text(folder / "cpulist").value_or(""))) {
        if (allowed.contains(cpu)) node.cpus.push_back({cpu, core_of(cpu, root)});
    }
    return node;
}

bool is_node(const std::string& name) {
    return name.size() > 4 && name.size() < 9 && name.starts_with("node") &&
           name.find_first_not_of("0123456789", 4) == std::string::npos;
}

int performance_cores() {
    int count = 0;
#ifdef __APPLE__
    size_t size = sizeof(count);
    if (::sysctlbyname("hw.perflevel0.physicalcpu", &count, &size, nullptr, 0) != 0) return 0;
#endif
    return count;
}

/// Returns the ids of a node's processors: the first one of every core, then the second ones, and so on.
std::vector<int> cores_first(std::vector<Cpu> cpus) {
    std::map<int, int> taken;
    std::vector<std::pair<int, int>> order;
    for (const Cpu& cpu : cpus) order.emplace_back(taken[cpu.core]++, cpu.id);
    std::ranges::sort(order);
    std::vector<int> ids;
    for (const auto& [turn, id] : order) ids.push_back(id);
    return ids;
}

}  // namespace

int Topology::cores() const {
    std::set<int> distinct;
    for (const Node& node : nodes) {
        for (const Cpu& cpu : node.cpus) distinct.insert(cpu.core);
    }
    return static_cast<int>(distinct.size());
}

std::vector<int> Topology::cpus() const {
    std::vector<int> all;
    for (const Node& node : nodes) {
        for (const Cpu& cpu : node.cpus) all.push_back(cpu.id);
    }
    return all;
}

std::vector<int> allowed_cpus() {
#ifdef __linux__
    constexpr int kMost = 1 << 14;
    std::vector<cpu_set_t> mask(kMost / CPU_SETSIZE);
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (::sched_getaffinity(0, bytes, mask.data()) != 0) return all_cpus();
    std::vector<int> cpus;
    for (int cpu = 0; cpu < kMost; cpu++) {
        if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(cpu);
    }
    return cpus;
#else
    return all_cpus();
#endif
}

Topology read_topology(const std::vector<int>& cpus, const fs::path& root) {
    const std::set<int> allowed(cpus.begin(), cpus.end());
    Topology topology;
    size_t placed = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/node", none)) {
        if (!is_node(entry.path().filename().string())) continue;
        const Node node = node_at(entry.path(), allowed, root);
        if (node.cpus.empty()) continue;
        placed += node.cpus.size();
        topology.nodes.push_back(node);
    }
    std::ranges::sort(topology.nodes, {}, &Node::id);
    if (placed == allowed.size()) return topology;
    Node whole{0, 0, {}};
    for (int cpu : allowed) whole.cpus.push_back({cpu, core_of(cpu, root)});
    return {{whole}};
}

int default_threads(const Topology& topology, const fs::path& root) {
    int cores = topology.cores();
    if (const int fast = performance_cores()) cores = std::min(cores, fast);
    const double quota = cpu_quota(root).value_or(cores);
    return std::max(1, static_cast<int>(std::min<double>(cores, quota)));
}

std::vector<int> cpus_for_threads(const Topology& topology, size_t count, size_t first) {
    std::vector<std::vector<int>> nodes;
    size_t longest = 0;
    for (const Node& node : topology.nodes) {
        nodes.push_back(cores_first(node.cpus));
        longest = std::max(longest, nodes.back().size());
    }
    std::vector<int> order;
    for (size_t i = 0; i < longest; i++) {
        for (const auto& node : nodes) {
            if (i < node.size()) order.push_back(node[i]);
        }
    }
    std::vector<int> chosen;
    for (size_t i = 0; i < std::min(count, order.size()); i++) chosen.push_back(order[(first + i) % order.size()]);
    return chosen;
}

}  // namespace ds4::machine
