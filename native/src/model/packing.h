#pragma once
// Which weights the CPU's kernels compute with, and their packing.

#include <deque>
#include <vector>

#include "cpu/packed_tensor.h"
#include "gguf/gguf.h"
#include "model/weights.h"

namespace ds4::model {

/// A tensor that only products read, and how many matrices it holds.
struct Packable {
    ggml_tensor* tensor;
    int64_t count = 1;
};

/// Those of a layer, or of a drafter's stage; of a target, none unless the CPU's own kernels compute with it.
void add_packable(std::vector<Packable>& out, const Layer& layer, const Hyperparameters& hp);
std::vector<Packable> packable(const Weights& weights, const Hyperparameters& hp);

/// How a tensor will lie, if its type has kernels.
std::optional<kernels::PackedTensor> packed_shape(const Packable& wanted);

/// Packs tiles [first, last) of all of a tensor's matrices from the file's rows into the tensor's data.
void pack_tiles(const gguf::Tensor& source, const ggml_tensor* tensor, int64_t first, int64_t last);

}  // namespace ds4::model
