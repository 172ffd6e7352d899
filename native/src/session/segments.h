#pragma once
// What happens between the segments that a scheduler cuts a graph into.

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

/// Given to a scheduler, it has a segment end with every slot and with every node that is watched, and waits for it.
class Segments {
   public:
    Segments(OwnNodes own, NodeWatch* watch) : own_(own), watch_(watch) {}
    /// Nothing to do between nodes: the graph can run as a whole.
    bool none() const { return !watch_ && (!own_.slots || own_.slots->empty()); }
    /// A scheduler's callback; `self` are the segments.
    static bool observe(ggml_tensor* node, bool ask, void* self);
    /// Throws what a kernel has thrown: ggml's code cannot be thrown through.
    void rethrow() const;

   private:
    const ops::device::Slot* slot_of(const ggml_tensor* node) const;
    void run(const ops::device::Slot& slot);

    OwnNodes own_;
    NodeWatch* watch_;
    std::exception_ptr error_;
};

}  // namespace ds4::session
