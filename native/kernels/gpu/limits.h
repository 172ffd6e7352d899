#pragma once
// Checks of the sizes and types that the device kernels support, before a launch. All kinds of devices share them.

#include <string>

#include "ds4/errors.h"
#include "ds4/limits.h"
#include "launcher.h"

namespace ds4::kernels {

/// The largest head size that the attention kernels have registers for.
constexpr int kLargestHeadSize = 512;

/// Throws BackendError if the attention kernels do not support the work.
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

/// The largest rank of W1 and W2 that the Markov kernels have registers for, and the most proposals of one acceptance.
constexpr int kLargestRank = 256, kMostProposals = kMaxRows;

/// Throws BackendError if the Markov head's kernels do not support the work.
inline void require_markov_head(const MarkovHead& w) {
    if (!w.embedding.data) return;
    if (w.embedding.columns < 1 || w.embedding.columns > kLargestRank || w.output.columns != w.embedding.columns) {
        throw BackendError("Markov head: ranks " + std::to_string(w.embedding.columns) + " and " +
                           std::to_string(w.output.columns) + ", the kernels take equal ones of 1 to " +
                           std::to_string(kLargestRank) + "; set DS4_OPS=generic");
    }
}

/// Throws BackendError if the acceptance kernels do not support the work.
inline void require_acceptance(const DeviceAcceptance& w) {
    if (w.k < 0 || w.k > kMostProposals) {
        throw BackendError("acceptance: " + std::to_string(w.k) + " proposals, the kernels take at most " +
                           std::to_string(kMostProposals) + "; set DS4_OPS=generic");
    }
}

}  // namespace ds4::kernels
