#pragma once
// The sizes and types that the device kernels take, checked before a launch; the same for all kinds of devices.

#include <string>

#include "ds4/errors.h"
#include "ds4/limits.h"
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

/// Columns of W1 and W2 that the Markov kernels have registers for, and proposals that acceptance takes.
constexpr int kLargestRank = 256, kMostProposals = kMaxRows;

/// Throws BackendError where the kernels of the Markov head cannot do the work.
inline void require_markov_head(const MarkovHead& w) {
    if (!w.embedding.data) return;
    if (w.embedding.columns < 1 || w.embedding.columns > kLargestRank || w.output.columns != w.embedding.columns) {
        throw BackendError("Markov head: ranks " + std::to_string(w.embedding.columns) + " and " +
                           std::to_string(w.output.columns) + ", the kernels take equal ones of 1 to " +
                           std::to_string(kLargestRank) + "; set DS4_OPS=generic");
    }
}

/// Throws BackendError where the kernels of the acceptance cannot do the work.
inline void require_acceptance(const DeviceAcceptance& w) {
    if (w.k < 0 || w.k > kMostProposals) {
        throw BackendError("acceptance: " + std::to_string(w.k) + " proposals, the kernels take at most " +
                           std::to_string(kMostProposals) + "; set DS4_OPS=generic");
    }
}

}  // namespace ds4::kernels
