// Cores, nodes and where memory and threads go, on machines that are described; the calls of the system are stand-ins.

#include "check.h"
#include "machine/numa.h"
#include "machine/topology.h"
#include "machine_tree.h"

using namespace ds4::machine;
using test::MachineTree;

namespace {

/// Two nodes of two cores with two processors each: core of 0 and 4, of 1 and 5 on the first node.
void two_nodes(MachineTree& tree) {
    for (int cpu = 0; cpu < 8; cpu++) {
        tree.cpu(cpu, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
    }
    tree.node(0, "0-1,4-5", 1000);
    tree.node(1, "2-3,6-7", 2000);
}

const std::vector<int> kAll{0, 1, 2, 3, 4, 5, 6, 7};

/// The questions that the stand-ins were asked, and their answers.
struct Asked {
    int mode = 0, sets = 0, binds = 0, last_mode = -1;
    long answer = 0;
    std::vector<unsigned long> nodes;
    uintptr_t begin = 0, end = 0;
} asked;

constexpr int kInterleave = 3;

const MemoryCalls kCalls{
    [](int* mode) {
        *mode = asked.mode;
        return 0L;
    },
    [](int mode, const unsigned long* nodes, unsigned long bits) {
        asked.sets++;
        asked.last_mode = mode;
        if (nodes) asked.nodes.assign(nodes, nodes + bits / (8 * sizeof(unsigned long)));
        return asked.answer;
    },
    [](void* data, size_t bytes, int mode, const unsigned long*, unsigned long) {
        asked.binds += mode == kInterleave;
        asked.begin = reinterpret_cast<uintptr_t>(data);
        asked.end = asked.begin + bytes;
        return 0L;
    },
};

}  // namespace

CASE(nodes_of_a_machine) {
    MachineTree tree;
    two_nodes(tree);
    const Topology all = read_topology(kAll, tree.root());
    CHECK(all.nodes.size() == 2);
    CHECK(all.cores() == 4);
    CHECK(all.cpus() == (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
    CHECK(all.nodes[1].id == 1 && all.nodes[1].memory == 2000 * 1024);
    const Topology some = read_topology({2, 6, 7}, tree.root());
    CHECK(some.nodes.size() == 1 && some.nodes[0].id == 1);
    CHECK(some.cores() == 2);
}

CASE(a_machine_that_describes_nothing_is_one_node) {
    MachineTree tree;
    const Topology topology = read_topology({3, 5}, tree.root());
    CHECK(topology.nodes.size() == 1);
    CHECK(topology.cores() == 2);
    CHECK(topology.cpus() == (std::vector<int>{3, 5}));
}

CASE(nodes_that_miss_a_processor_are_not_believed) {
    MachineTree tree;
    two_nodes(tree);
    CHECK(read_topology({0, 1, 2, 9}, tree.root()).nodes.size() == 1);
}

CASE(default_threads_are_cores_within_the_quota) {
    MachineTree tree;
    two_nodes(tree);
    const Topology all = read_topology(kAll, tree.root());
    CHECK(default_threads(all, tree.root()) == 4);
    CHECK(default_threads(read_topology({0, 4}, tree.root()), tree.root()) == 1);
    tree.write("proc/self/cgroup", "0::/\n");
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu\n");
    for (const auto& [quota, wanted] :
         {std::pair("290000 100000\n", 2), {"20000 100000\n", 1}, {"900000 100000\n", 4}}) {
        tree.write("sys/fs/cgroup/cpu.max", quota);
        CHECK(default_threads(all, tree.root()) == wanted);
    }
}

CASE(threads_are_spread_over_nodes_and_cores) {
    MachineTree tree;
    two_nodes(tree);
    const Topology all = read_topology(kAll, tree.root());
    CHECK(cpus_for_threads(all, 4, 0) == (std::vector<int>{0, 2, 1, 3}));
    CHECK(cpus_for_threads(all, 2, 2) == (std::vector<int>{1, 3}));
    CHECK(cpus_for_threads(all, 6, 0) == (std::vector<int>{0, 2, 1, 3, 4, 6}));
    CHECK(cpus_for_threads(all, 3, 7) == (std::vector<int>{7, 0, 2}));
    CHECK(cpus_for_threads(all, 9, 0).size() == 8);
}

CASE(memory_goes_to_all_nodes_in_turn_for_a_while) {
    MachineTree tree;
    two_nodes(tree);
    asked = {};
    {
        const ScopedInterleaving interleaving(read_topology(kAll, tree.root()), kCalls);
        CHECK(interleaving.active());
        CHECK(asked.sets == 1 && asked.last_mode == kInterleave);
        CHECK(asked.nodes.size() >= 2 && asked.nodes[0] == 3);
        interleaving.keep(reinterpret_cast<void*>(0x100010), 0x40000);
        CHECK(asked.binds == 1 && asked.begin > 0x100010 && asked.end <= 0x140010);
        CHECK(asked.begin % 4096 == 0 && asked.end % 4096 == 0);
        interleaving.keep(reinterpret_cast<void*>(0x100010), 16);
        CHECK(asked.binds == 1);
    }
    CHECK(asked.sets == 2 && asked.last_mode == 0);
}

CASE(memory_stays_as_it_is_where_there_is_nothing_to_spread) {
    MachineTree tree;
    two_nodes(tree);
    const Topology two = read_topology(kAll, tree.root());
    Topology lopsided = two;
    lopsided.nodes[1].memory = 0;
    for (const Topology& one : {read_topology({0, 1}, tree.root()), lopsided}) {
        asked = {};
        CHECK(!ScopedInterleaving(one, kCalls).active());
        CHECK(asked.sets == 0);
    }
    asked = {};
    asked.mode = kInterleave;  // someone has chosen already
    CHECK(!ScopedInterleaving(two, kCalls).active());
    CHECK(asked.sets == 0);
}

CASE(a_refused_policy_is_not_active) {
    MachineTree tree;
    two_nodes(tree);
    asked = {};
    asked.answer = -1;
    {
        const ScopedInterleaving refused(read_topology(kAll, tree.root()), kCalls);
        CHECK(!refused.active());
        refused.keep(reinterpret_cast<void*>(0x100000), 0x40000);
    }
    CHECK(asked.sets == 1 && asked.binds == 0);
}

CASE(high_node_numbers_have_their_bit) {
    Topology far{{{1, 4096, {{0, 0}}}, {70, 4096, {{1, 1}}}}};
    asked = {};
    const ScopedInterleaving interleaving(far, kCalls);
    CHECK(asked.nodes.size() == 3 && asked.nodes[0] == 2 && asked.nodes[1] == 1UL << 6);
}

CASE(a_thread_runs_where_it_may_and_then_anywhere_again) {
    const std::vector<int> before = allowed_cpus();
    CHECK(!before.empty());
    {
        const ScopedAffinity here({before.back()});
#ifdef __linux__
        CHECK(allowed_cpus() == std::vector<int>{before.back()});
#endif
    }
    CHECK(allowed_cpus() == before);
}
