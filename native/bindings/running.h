#pragma once
// Calls that compute without the interpreter's lock. None may come back to Python while that ends: a thread that asks
// for the lock then is taken down in the middle of C++, which ends the process. So Python's end stops them and waits.

#include <pybind11/pybind11.h>

#include <memory>

#include "ds4/errors.h"

namespace ds4::bindings {

/// One such call, from before it lets go of the interpreter's lock until it has it again.
class RunningCall {
   public:
    /// With the interpreter's lock. Throws Cancelled in the thread that ends Python; in others that come late it never
    /// returns.
    RunningCall();
    ~RunningCall();
    RunningCall(const RunningCall&) = delete;
    RunningCall& operator=(const RunningCall&) = delete;

    /// After the work, still without the lock: never returns where Python is ending.
    void done();
};

/// Whether Python is ending: calls stop at their next check.
bool python_ends();

/// Runs `call` without the interpreter's lock; Ctrl-C stops it at once, and is then raised as KeyboardInterrupt.
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

/// Deletes without the interpreter's lock: a destructor may wait for a remote device's connection, whose holder may
/// wait for the interpreter.
struct DeleteUnlocked {
    template <typename T>
    void operator()(T* object) const {
        if (!PyGILState_Check()) {  // the last owner was a session, which is deleted without the lock itself
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

/// Shares an object of the core with Python, whose share ends without the interpreter's lock.
template <typename T>
std::shared_ptr<T> released_unlocked(std::shared_ptr<const T> object) {
    T* raw = const_cast<T*>(object.get());
    auto* owner = new std::shared_ptr<const T>(std::move(object));
    return std::shared_ptr<T>(raw, [owner](T*) { DeleteUnlocked()(owner); });
}

/// Whether a wait in the core is to end: Python is ending, or a signal's handler has raised. Takes the interpreter's
/// lock.
bool interrupted();

/// Stops all calls and waits for them, a few seconds at most. Without the lock, in the thread that ends Python.
void end_calls();

}  // namespace ds4::bindings
