#pragma once
// The CPU threads of a session.

#include <vector>

#include "ggml-backend.h"
#include "ggml-cpu.h"
#include "machine/load.h"

namespace ds4::backend {

/// The number of CPU threads of a session, and where they run.
struct WorkerOptions {
    int threads = 1;
    /// One processor for each thread to stay on. When it is empty, the system places the threads.
    std::vector<int> cpus;
    /// Measures free cores: a graph gets fewer threads while other processes use the cores. Null: always all threads.
    machine::CpuLoad* load = nullptr;
};

/// The thread pool of a session. Between graphs its threads busy-wait for some milliseconds and then sleep.
class Workers {
   public:
    /// Starts the threads. `cpu` is the CPU backend and must outlive the pool. Throws BackendError without memory.
    Workers(ggml_backend_t cpu, WorkerOptions options);
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// Computes a graph; the scheduler may give all of it or only a part to the CPU backend.
    ggml_status compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph);

   private:
    ggml_backend_t cpu_;
    WorkerOptions options_;
    std::vector<int> callers_;  // processors of the calling thread, which is one of the pool's while it computes
    ggml_threadpool_t pool_;
};

/// Returns the number of threads for one of several sessions that compute now. `threads` is what the session has, and
/// `of_all_sessions` what all of them have. When that is more than the free cores, each session gets its proportional
/// part of them; at least 1.
int threads_of_session(int threads, int of_all_sessions, int free_cores);

}  // namespace ds4::backend
