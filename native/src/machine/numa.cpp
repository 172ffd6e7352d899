#include "machine/numa.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#ifdef __linux__
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

namespace ds4::machine {
namespace {

#ifdef __linux__

constexpr int kDefault = MPOL_DEFAULT, kInterleave = MPOL_INTERLEAVE;
const MemoryCalls kSystem{
    [](int* mode) { return ::syscall(SYS_get_mempolicy, mode, nullptr, 0UL, nullptr, 0UL); },
    [](int mode, const unsigned long* nodes, unsigned long bits) {
        return ::syscall(SYS_set_mempolicy, mode, nodes, bits);
    },
    [](void* data, size_t bytes, int mode, const unsigned long* nodes, unsigned long bits) {
        return ::syscall(SYS_mbind, data, bytes, mode, nodes, bits, 0U);
    },
};

#else

constexpr int kDefault = 0, kInterleave = 3;
const MemoryCalls kSystem{[](int*) { return -1L; }, [](int, const unsigned long*, unsigned long) { return -1L; },
                          [](void*, size_t, int, const unsigned long*, unsigned long) { return -1L; }};

#endif

constexpr size_t kWord = 8 * sizeof(unsigned long);

/// Returns a bit mask of the nodes that have memory. It has one word more than needed, because the kernel reads one bit
/// less than the length it is given.
std::vector<unsigned long> mask_of(const std::vector<Node>& nodes) {
    std::vector<unsigned long> mask(1);
    for (const Node& node : nodes) {
        if (node.memory <= 0) continue;
        mask.resize(std::max(mask.size(), node.id / kWord + 2));
        mask[node.id / kWord] |= 1UL << (node.id % kWord);
    }
    return mask;
}

void set_affinity([[maybe_unused]] const std::vector<int>& cpus) {
#ifdef __linux__
    std::vector<cpu_set_t> mask(static_cast<size_t>(*std::ranges::max_element(cpus)) / CPU_SETSIZE + 1);
    const size_t size = mask.size() * sizeof(cpu_set_t);
    for (int cpu : cpus) CPU_SET_S(cpu, size, mask.data());
    ::sched_setaffinity(0, size, mask.data());
#endif
}

unsigned long bits(const std::vector<unsigned long>& mask) { return mask.size() * kWord; }

}  // namespace

const MemoryCalls& system_memory_calls() { return kSystem; }

ScopedInterleaving::ScopedInterleaving(const Topology& topology, const MemoryCalls& calls)
    : calls_(calls), nodes_(mask_of(topology.nodes)) {
    int mode = kDefault;
    const auto with_memory = std::ranges::count_if(topology.nodes, [](const Node& node) { return node.memory > 0; });
    if (with_memory < 2 || calls_.get_policy(&mode) != 0 || mode != kDefault) return;
    active_ = calls_.set_policy(kInterleave, nodes_.data(), bits(nodes_)) == 0;
}

ScopedInterleaving::~ScopedInterleaving() {
    if (active_) calls_.set_policy(kDefault, nullptr, 0);
}

void ScopedInterleaving::keep(void* data, size_t bytes) const {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(data);
    const uintptr_t begin = (at + page - 1) / page * page, end = (at + bytes) / page * page;
    if (!active_ || end <= begin) return;
    calls_.bind(reinterpret_cast<void*>(begin), end - begin, kInterleave, nodes_.data(), bits(nodes_));
}

ScopedAffinity::ScopedAffinity(const std::vector<int>& cpus) {
    if (cpus.empty()) return;
    before_ = allowed_cpus();
    set_affinity(cpus);
}

ScopedAffinity::~ScopedAffinity() {
    if (!before_.empty()) set_affinity(before_);
}

}  // namespace ds4::machine
