#pragma once
// Work between the segments into which a scheduler divides a graph.

#include <exception>
#include <vector>

#include "ops/device/kernel_nodes.h"
#include "session/node_times.h"

namespace ds4::session {

/// The nodes that a device's own kernels compute, in one run of a graph.
struct OwnNodes {
    const std::vector<ops::device::Slot>* slots = nullptr;
    kernels::Launcher* launcher = nullptr;
};

/// The callback of a scheduler: segments end at each slot and at each watched node. It runs the kernels of slots, and
/// waits for them.
class Segments {
   public:
    Segments(OwnNodes own, NodeWatch* watch) : own_(own), watch_(watch) {}
    /// Returns whether there is nothing to do between nodes, so that the graph can run as a whole.
    bool none() const { return !watch_ && (!own_.slots || own_.slots->empty()); }
    /// The function for ggml_backend_sched_set_eval_callback; `self` points to a Segments.
    static bool observe(ggml_tensor* node, bool ask, void* self);
    /// Rethrows the exception of a kernel. It is kept until then, since exceptions must not pass through ggml's C code.
    void rethrow() const;

   private:
    const ops::device::Slot* slot_of(const ggml_tensor* node) const;
    void run(const ops::device::Slot& slot);

    OwnNodes own_;
    NodeWatch* watch_;
    std::exception_ptr error_;
};

}  // namespace ds4::session
