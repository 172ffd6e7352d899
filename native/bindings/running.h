#pragma once
// Calls that compute without the GIL. None may return to Python while the interpreter is finalizing: a thread that
// requests the GIL then is terminated inside C++ code, which aborts the process. So finalization stops all calls first,
// and waits for them.

#include <pybind11/pybind11.h>

#include <memory>

#include "ds4/errors.h"

namespace ds4::bindings {

/// Registers one such call, from before it releases the GIL until it has acquired it again.
class RunningCall {
   public:
    /// The caller holds the GIL. While Python is finalizing, throws Cancelled in the finalizing thread, and never
    /// returns in any other.
    RunningCall();
    ~RunningCall();
    RunningCall(const RunningCall&) = delete;
    RunningCall& operator=(const RunningCall&) = delete;

    /// Called after the work, before the GIL is acquired again. Never returns while Python is finalizing.
    void done();
};

/// Returns whether Python is finalizing; calls stop at their next check.
bool python_ends();

/// Runs `call` without the GIL. Ctrl-C stops the call, and is then raised as KeyboardInterrupt.
template <typename F>
void run(F call) {
    try {
        RunningCall running;
        const pybind11::gil_scoped_release release;
        try {
            call();
        } catch (...) {
            running.done();
            throw;
        }
        running.done();
    } catch (const Cancelled&) {
        if (PyErr_Occurred()) throw pybind11::error_already_set();
        throw;
    }
}

/// Deletes an object without the GIL. The destructor may wait for the connection to a remote device, and the thread
/// that holds the connection may wait for the GIL.
struct DeleteUnlocked {
    template <typename T>
    void operator()(T* object) const {
        if (!PyGILState_Check()) {  // the last owner was a session, which is itself deleted without the GIL
            delete object;
            return;
        }
        if (python_ends()) return;  // the end of the process gives everything back
        RunningCall running;
        const pybind11::gil_scoped_release release;
        delete object;
        running.done();
    }
};

/// Returns a shared pointer for Python to an object of the core; its last reference is released without the GIL.
template <typename T>
std::shared_ptr<T> released_unlocked(std::shared_ptr<const T> object) {
    T* raw = const_cast<T*>(object.get());
    auto* owner = new std::shared_ptr<const T>(std::move(object));
    return std::shared_ptr<T>(raw, [owner](T*) { DeleteUnlocked()(owner); });
}

/// Returns whether a wait in the core has to end: Python is finalizing, or a signal handler has raised an exception.
/// Acquires the GIL.
bool interrupted();

/// Stops all calls and waits for them, a few seconds at most. Called without the GIL in the finalizing thread.
void end_calls();

}  // namespace ds4::bindings
