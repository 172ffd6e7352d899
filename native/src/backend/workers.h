#pragma once
// The threads that compute a session's graphs on the CPU.

#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "machine/load.h"

namespace ds4::backend {

struct WorkerOptions {
    int threads = 1;
    /// A processor for every thread to stay on; empty: where the system likes.
    std::vector<int> cpus;
    /// With it, a graph gets fewer threads while others need the processors; null: always all of them.
    machine::CpuLoad* load = nullptr;
};

/// A pool of its own: between graphs its threads sleep, after some milliseconds in which the next one may come.
class Workers {
   public:
    /// `cpu` is to outlive it.
    Workers(ggml_backend_t cpu, WorkerOptions options);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Runs a graph, of which `cpu` computes a part or all.
    ggml_status compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph);

   private:
    ggml_backend_t cpu_;
    WorkerOptions options_;
    std::vector<int> callers_;  // the caller is one of the threads while it computes
    ggml_threadpool_t pool_;
};

/// Threads for one of several sessions that compute at this moment: all that it has, or its part of the free cores when
/// together they have more threads than that; at least 1.
int threads_of_session(int threads, int of_all_sessions, int free_cores);

}  // namespace ds4::backend
