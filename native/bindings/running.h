#pragma once
// Calls that compute without the interpreter's lock. None may come back to Python while that ends: a thread that asks
// for the lock then is taken down in the middle of C++, which ends the process. So Python's end stops them and waits.

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

/// Stops all calls and waits for them, a few seconds at most. Without the lock, in the thread that ends Python.
void end_calls();

}  // namespace ds4::bindings
