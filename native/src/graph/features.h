#pragma once
// The features that a drafter reads of the target: the mean of the streams after certain layers (docs/dspark.md
// section 2.1).

#include <vector>

#include "ops/ops.h"

namespace ds4::graph {

/// The mean over the streams of x [hidden, streams, n]: [hidden, n].
ggml_tensor* stream_mean(const ops::Build& b, ggml_tensor* x);

/// Writes the tapped means, one below the other, to the rows `slots` [n] of `ring`.
void keep_features(const ops::Build& b, const std::vector<ggml_tensor*>& tapped, ggml_tensor* ring, ggml_tensor* slots);

}  // namespace ds4::graph
