// Threads of a session: how many compute, where, and what others leave them.

#include <chrono>
#include <thread>

#include "backend/device.h"
#include "backend/workers.h"
#include "check.h"
#include "ggml-cpp.h"
#include "machine/load.h"
#include "machine_tree.h"

using namespace ds4::machine;
using ds4::backend::threads_of_session;
using ds4::backend::Workers;
using test::MachineTree;

namespace {

constexpr size_t kNodes = 8;

/// A graph whose only node counts the threads that compute it.
struct Counting {
    ggml_backend_ptr cpu{ggml_backend_dev_init(ds4::backend::cpu_device(), nullptr)};
    ggml_context_ptr ctx{ggml_init({kNodes * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true})};
    ggml_backend_sched_ptr scheduler;
    ggml_cgraph* graph = ggml_new_graph(ctx.get());
    int threads = 0;

    Counting() {
        ggml_backend_t backends[] = {cpu.get()};
        scheduler.reset(ggml_backend_sched_new(backends, nullptr, 1, kNodes, false, false));
        ggml_build_forward_expand(
            graph, ggml_custom_4d(ctx.get(), GGML_TYPE_F32, 1, 1, 1, 1, nullptr, 0, count, GGML_N_TASKS_MAX, this));
        ggml_backend_sched_alloc_graph(scheduler.get(), graph);
    }

    static void count(ggml_tensor*, int ith, int nth, void* self) {
        if (ith == 0) static_cast<Counting*>(self)->threads = nth;
    }

    int run(Workers& workers) {
        threads = 0;
        CHECK(workers.compute(scheduler.get(), graph) == GGML_STATUS_SUCCESS);
        return threads;
    }
};

std::string busy_for(double seconds) {
    const auto ticks = static_cast<int64_t>(seconds * static_cast<double>(::sysconf(_SC_CLK_TCK)));
    return "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 " + std::to_string(ticks) + " 0 0 50 60 0 0 0 0 0\n";
}

}  // namespace

CASE(what_is_busy) {
    MachineTree tree;
    const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    tree.write("proc/stat",
               "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 100 200 8 16 32 64 128\ncpu1 1000 0 0 0 0 0 0 0 0 0\n"
               "cpu12 5 0 0 7 0 0 0 0 0 0\nintr 1 2\n");
    CHECK_CLOSE(usage({0}, tree.root()).busy, 63 * tick, 1e-9);
    CHECK_CLOSE(usage({0, 12}, tree.root()).busy, 68 * tick, 1e-9);
    CHECK(usage({0}, tree.root()).own > 0);
    MachineTree mute;
    CHECK(usage({0}, mute.root()).busy == 0 && usage({0}, mute.root()).own == 0);
}

CASE(cores_that_others_leave) {
    struct {
        int cores;
        double busy, own;  // in 2 seconds
        int free;
    } const rows[] = {
        {4, 0, 0, 4},     {4, 8, 8, 4},   {4, 0.5, 0, 4},  // now and then does not count
        {4, 8, 6, 3},     {4, 8, 6.9, 3}, {4, 8, 4, 2},     {2, 4, 2, 1}, {2, 4, 0.1, 1},
        {16, 32, 31, 15}, {1, 2, 0.2, 1}, {4, 7.9, 8.3, 4},  // the two are not counted by the same clock
    };
    for (const auto& row : rows) {
        CHECK(free_cores(row.cores, {10, 100, 50}, {12, 100 + row.busy, 50 + row.own}) == row.free);
    }
}

CASE(sessions_share_what_is_free) {
    CHECK(threads_of_session(4, 4, 8) == 4);
    CHECK(threads_of_session(4, 8, 8) == 4);
    CHECK(threads_of_session(8, 16, 8) == 4);
    CHECK(threads_of_session(8, 8, 3) == 3);
    CHECK(threads_of_session(2, 10, 4) == 1);
}

CASE(threads_that_were_asked_for_all_compute) {
    Counting graph;
    for (int threads : {1, 2, 3}) {
        Workers workers(graph.cpu.get(), {threads, {}, nullptr});
        CHECK(graph.run(workers) == threads);
        CHECK(graph.run(workers) == threads);
    }
}

CASE(threads_step_back_while_others_compute) {
    MachineTree tree;
    tree.write("proc/stat", busy_for(0));
    CpuLoad load({{{0, 0, {{0, 0}, {1, 1}}}}}, tree.root());
    Counting graph;
    Workers workers(graph.cpu.get(), {2, {}, &load});
    CHECK(graph.run(workers) == 2);
    const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); };
    wait();
    tree.write("proc/stat", busy_for(1000));
    CHECK(graph.run(workers) == 1);
    wait();
    CHECK(graph.run(workers) == 2);
}

CASE(the_caller_is_where_it_was_after_threads_that_stay) {
    const std::vector<int> before = allowed_cpus();
    Counting graph;
    {
        Workers workers(graph.cpu.get(), {static_cast<int>(before.size()), before, nullptr});
        CHECK(allowed_cpus() == before);
        CHECK(graph.run(workers) == static_cast<int>(before.size()));
        CHECK(allowed_cpus() == before);
    }
    CHECK(allowed_cpus() == before);
}
