#pragma once
// What happens when ggml gives up: it ends the process, because its interface has no way to report a device that is
// lost in the middle of a graph.

namespace ds4::backend {

/// From now on such an end is one line on standard error instead of a backtrace by a debugger, which ggml would start.
void explain_aborts();

/// The process then ends with this exit code instead of SIGABRT. For programs, whose callers look at the code.
void exit_on_abort(int code);

}  // namespace ds4::backend
