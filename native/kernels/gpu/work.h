#pragma once
// What is asked of work before it is launched, the same for all kinds of devices.

#include <string>

#include "ds4/errors.h"
#include "launcher.h"

namespace ds4::kernels {

/// Components of a head that the attention kernels have registers for.
constexpr int kLargestHeadSize = 512;

/// Throws BackendError where the attention kernels cannot do the work.
inline void require_draft_attention(const DraftAttention& w) {
    if (w.size < 1 || w.size > kLargestHeadSize) {
        throw BackendError("draft attention: heads of " + std::to_string(w.size) +
                           " components, the kernels take 1 to " + std::to_string(kLargestHeadSize) +
                           "; set DS4_OPS=generic");
    }
    if (w.ring.type != Element::f16 && w.ring.type != Element::f32) {
        throw BackendError("draft attention: the ring is neither F16 nor F32; set DS4_OPS=generic");
    }
}

}  // namespace ds4::kernels
