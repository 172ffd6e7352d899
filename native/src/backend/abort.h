#pragma once
// Controls what happens when ggml aborts. ggml ends the process when, for example, a device is lost during a graph,
// because its interface has no way to report that.

namespace ds4::backend {

/// Makes an abort of ggml print one line on standard error. By default ggml starts a debugger for a backtrace.
void explain_aborts();

/// Makes an abort of ggml end the process with this exit code instead of SIGABRT, for programs whose callers look at
/// the code. Needs explain_aborts.
void exit_on_abort(int code);

}  // namespace ds4::backend
