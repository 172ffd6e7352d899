#include "backend/workers.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "backend/device.h"
#include "ds4/errors.h"
#include "machine/numa.h"

namespace ds4::backend {
namespace {

/// The polling level of ggml's thread pool: how long a thread busy-waits for the next graph before it sleeps. 1 is some
/// milliseconds.
constexpr uint32_t kPoll = 1;

/// The number of threads of all sessions of this process that are computing now.
std::atomic<int> computing{0};

/// Counts the threads of one session as computing for its lifetime.
class ComputingThreads {
   public:
    explicit ComputingThreads(int threads) : threads_(threads), all_(computing += threads) {}
    ~ComputingThreads() { computing -= threads_; }
    ComputingThreads(const ComputingThreads&) = delete;
    ComputingThreads& operator=(const ComputingThreads&) = delete;
    int all() const { return all_; }

   private:
    int threads_, all_;
};

/// Returns whether ggml's CPU mask, which has a fixed size, can hold these processors.
bool fit(const std::vector<int>& cpus) {
    return std::ranges::all_of(cpus, [](int cpu) { return cpu < GGML_MAX_N_THREADS; });
}

ggml_threadpool_t new_pool(ggml_backend_t cpu, const WorkerOptions& options) {
    ggml_threadpool_params params = ggml_threadpool_params_default(options.threads);
    params.poll = kPoll;
    params.strict_cpu = !options.cpus.empty();
    for (int id : options.cpus) params.cpumask[id] = true;
    ggml_threadpool_t pool = proc_address<decltype(&ggml_threadpool_new)>(cpu, "ggml_threadpool_new")(&params);
    if (!pool) throw BackendError("no memory for " + std::to_string(options.threads) + " threads");
    return pool;
}

}  // namespace

int threads_of_session(int threads, int of_all_sessions, int free_cores) {
    if (of_all_sessions <= free_cores) return threads;
    return std::max(1, threads * free_cores / of_all_sessions);
}

Workers::Workers(ggml_backend_t cpu, WorkerOptions options) : cpu_(cpu), options_(std::move(options)) {
    if (!fit(options_.cpus)) options_.cpus.clear();
    if (!options_.cpus.empty()) callers_ = {*std::ranges::max_element(options_.cpus)};
    const machine::ScopedAffinity here(callers_);  // a pool counts the thread that makes it among those that stay
    pool_ = new_pool(cpu_, options_);
    proc_address<decltype(&ggml_backend_cpu_set_threadpool)>(cpu_, "ggml_backend_cpu_set_threadpool")(cpu_, pool_);
    set_threads(cpu_, options_.threads);
}

Workers::~Workers() { proc_address<decltype(&ggml_threadpool_free)>(cpu_, "ggml_threadpool_free")(pool_); }

ggml_status Workers::compute(ggml_backend_sched_t scheduler, ggml_cgraph* graph) {
    const ComputingThreads computing_threads(options_.threads);
    if (options_.load)
        set_threads(cpu_, threads_of_session(options_.threads, computing_threads.all(), options_.load->free_cores()));
    const machine::ScopedAffinity here(callers_);
    return ggml_backend_sched_graph_compute(scheduler, graph);
}

}  // namespace ds4::backend
