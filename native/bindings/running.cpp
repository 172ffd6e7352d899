#include "running.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace ds4::bindings {
namespace {

/// A device that does not answer must not keep the process.
constexpr std::chrono::seconds kPatience{5};

std::mutex mutex;
std::condition_variable ended;
int calls = 0;
std::atomic<bool> ending{false};
std::thread::id ender;

void count(int change) {
    std::lock_guard lock(mutex);
    calls += change;
    ended.notify_all();
}

/// Waits until the process has ended, as Python's own threads do from version 3.14 on.
[[noreturn]] void wait_for_the_end() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

RunningCall::RunningCall() {
    if (!ending) {
        count(+1);
        return;
    }
    if (std::this_thread::get_id() == ender) throw Cancelled();
    const pybind11::gil_scoped_release release;
    wait_for_the_end();
}

RunningCall::~RunningCall() { count(-1); }

void RunningCall::done() {
    if (!ending) return;
    count(-1);
    wait_for_the_end();
}

bool interrupted() {
    if (python_ends()) return true;
    const pybind11::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

bool python_ends() { return ending; }

void end_calls() {
    std::unique_lock lock(mutex);
    ender = std::this_thread::get_id();
    ending = true;
    ended.wait_for(lock, kPatience, [] { return calls == 0; });
}

}  // namespace ds4::bindings
