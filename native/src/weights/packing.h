#pragma once
// Which weights the CPU's kernels compute with, and their packing.

#include <deque>
#include <vector>

#include "cpu/packed_tensor.h"
#include "gguf/gguf.h"
#include "weights/weights.h"

namespace ds4::weights {

/// A tensor that only products read, and how many packable it holds.
struct Packable {
    ggml_tensor* tensor;
    int64_t count = 1;
};

/// Those of a layer, or of a drafter's stage; of a target, what the CPU's own kernels compute with.
void add_packable(std::vector<Packable>& out, const Layer& layer, const model::Hyperparameters& hp);
std::vector<Packable> packable(const Weights& weights, const model::Hyperparameters& hp);

/// How a tensor will lie, if its type has kernels.
std::optional<kernels::PackedTensor> packed_shape(const Packable& packable);

/// Throws FormatError naming a tensor of the file that was packed ahead of time otherwise than `packable` has it.
void require_same_packing(const gguf::File& file, const std::vector<Packable>& packable);

/// Packs rows of `type` as tiles of `packed`, which is the same type, or F32 for any.
void pack_rows(ggml_type type, const void* rows, int64_t count, int64_t columns, ggml_type packed, void* out);

/// Packs tiles [first, last) of all of a tensor's packable from the file's rows into the tensor's data.
void pack_tiles(const gguf::Tensor& source, const ggml_tensor* tensor, int64_t first, int64_t last);

}  // namespace ds4::weights
