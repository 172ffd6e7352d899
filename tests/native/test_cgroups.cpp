// Quotas and memory that control groups of both versions leave, in trees that describe them.

#include "check.h"
#include "machine/cgroup.h"
#include "machine/memory.h"
#include "machine/text.h"
#include "machine_tree.h"

using ds4::machine::available_memory;
using ds4::machine::cpu_quota;
using ds4::machine::memory_left;
using test::MachineTree;

namespace {

const std::string kGroups = "sys/fs/cgroup/";

/// Version 2 with this process in app/worker.
void version_2(MachineTree& tree) {
    tree.write("proc/self/cgroup", "0::/app/worker\n");
    tree.write(kGroups + "cgroup.controllers", "cpu memory\n");
}

void memory_2(MachineTree& tree, const std::string& group, const std::string& limit, int used, int files) {
    tree.write(kGroups + group + "memory.max", limit + "\n");
    tree.write(kGroups + group + "memory.current", std::to_string(used) + "\n");
    tree.write(kGroups + group + "memory.stat",
               "anon 7\nfile 9999\ninactive_file " + std::to_string(files - 10) + "\nactive_file 10\nunevictable 0\n");
}

}  // namespace

CASE(cpu_lists) {
    CHECK(ds4::machine::cpu_list("0-3,8\n") == (std::vector<int>{0, 1, 2, 3, 8}));
    CHECK(ds4::machine::cpu_list("5") == std::vector<int>{5});
    for (const char* none : {"", "\n", "x", "-4", "0-99999999"}) CHECK(ds4::machine::cpu_list(none).empty());
}

CASE(no_group_limits_nothing) {
    MachineTree tree;
    CHECK(!cpu_quota(tree.root()));
    CHECK(!memory_left(tree.root()));
}

CASE(the_least_quota_of_the_groups_around) {
    MachineTree tree;
    version_2(tree);
    tree.write(kGroups + "app/worker/cpu.max", "max 100000\n");
    CHECK(!cpu_quota(tree.root()));
    tree.write(kGroups + "app/cpu.max", "250000 100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 2.5, 1e-9);
    tree.write(kGroups + "app/worker/cpu.max", "300000 50000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 2.5, 1e-9);
    tree.write(kGroups + "app/worker/cpu.max", "50000 100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 0.5, 1e-9);
    tree.write(kGroups + "other/cpu.max", "1000 100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 0.5, 1e-9);
}

CASE(quota_of_version_1) {
    MachineTree tree;
    tree.write("proc/self/cgroup", "5:cpuset:/\n3:cpu,cpuacct:/app\n0::/\n");
    tree.write(kGroups + "cpu/app/cpu.cfs_quota_us", "-1\n");
    tree.write(kGroups + "cpu/app/cpu.cfs_period_us", "100000\n");
    CHECK(!cpu_quota(tree.root()));
    tree.write(kGroups + "cpu/app/cpu.cfs_quota_us", "150000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 1.5, 1e-9);
}

CASE(a_container_that_sees_its_group_as_the_mount) {
    MachineTree tree;
    tree.write("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n4:memory:/docker/0123\n");
    tree.write(kGroups + "cpu/cpu.cfs_quota_us", "200000\n");
    tree.write(kGroups + "cpu/cpu.cfs_period_us", "100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 2, 1e-9);
}

CASE(a_group_outside_of_the_namespace) {
    MachineTree tree;
    tree.write("proc/self/cgroup", "0::/../../elsewhere\n");
    tree.write(kGroups + "cgroup.controllers", "cpu\n");
    tree.write(kGroups + "cpu.max", "400000 100000\n");
    tree.write(kGroups + "elsewhere/cpu.max", "100000 100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 4, 1e-9);
}

CASE(version_2_beside_version_1) {
    MachineTree tree;
    tree.write("proc/self/cgroup", "4:memory:/\n0::/app\n");
    tree.write(kGroups + "unified/app/cpu.max", "300000 100000\n");
    CHECK_CLOSE(cpu_quota(tree.root()).value_or(0), 3, 1e-9);
}

CASE(memory_left_counts_file_pages_as_free) {
    MachineTree tree;
    version_2(tree);
    memory_2(tree, "app/worker/", "max", 900, 50);
    CHECK(!memory_left(tree.root()));
    memory_2(tree, "app/worker/", "1000", 900, 300);
    CHECK(memory_left(tree.root()) == 400);
    memory_2(tree, "app/", "1200", 1100, 250);
    CHECK(memory_left(tree.root()) == 350);
    tree.write(kGroups + "app/worker/memory.high", "700\n");
    CHECK(memory_left(tree.root()) == 100);
    tree.write(kGroups + "app/worker/memory.high", "500\n");
    CHECK(memory_left(tree.root()) == 0);
}

CASE(memory_of_version_1) {
    MachineTree tree;
    tree.write("proc/self/cgroup", "4:memory:/app\n0::/\n");
    tree.write(kGroups + "memory/app/memory.limit_in_bytes", "1000\n");
    tree.write(kGroups + "memory/app/memory.usage_in_bytes", "900\n");
    tree.write(kGroups + "memory/app/memory.stat",
               "inactive_file 1\nactive_file 1\ntotal_inactive_file 200\ntotal_active_file 100\n");
    CHECK(memory_left(tree.root()) == 400);
}

CASE(available_memory_is_the_least_of_system_and_groups) {
    MachineTree tree;
    tree.write("proc/meminfo", "MemTotal:       4000 kB\nMemFree:          10 kB\nMemAvailable:   2000 kB\n");
    CHECK(available_memory(tree.root()) == 2000 * 1024);
    version_2(tree);
    memory_2(tree, "app/", "9000000", 100, 20);
    CHECK(available_memory(tree.root()) == 2000 * 1024);
    memory_2(tree, "app/", "1000000", 100, 20);
    CHECK(available_memory(tree.root()) == 1000000 - 80);
}
