#pragma once
// A drafter's file, read and checked, before any weight is put in place.

#include "drafter/weights.h"
#include "ggml-cpp.h"

namespace ds4::drafter {

struct Description {
    Hyperparameters hp;
    ggml_context_ptr ctx;  // holds the tensors of `weights`, which have no data yet
    Weights weights;
};

/// Throws FormatError for a file that is no sound drafter, and PairError where it does not fit the target. Without a
/// target only the file is checked, and numbers that it leaves to the target are 0.
Description describe(const gguf::File& file, const model::Hyperparameters* target);

}  // namespace ds4::drafter
