#pragma once
// Reads and checks the file of a drafter, without loading its weights.

#include "drafter/weights.h"
#include "ggml-cpp.h"

namespace ds4::drafter {

/// The hyperparameters and weights of a drafter; the weights have no data.
struct Description {
    Hyperparameters hp;
    ggml_context_ptr ctx;  // owns the tensors of `weights`
    Weights weights;
};

/// Reads and checks a file. With a `target`, checks that they fit, too. Without one, numbers that the file leaves to
/// the target are 0. Throws FormatError for a file that is not a sound drafter, PairError when it does not fit the
/// target.
Description describe(const gguf::File& file, const model::Hyperparameters* target);

}  // namespace ds4::drafter
