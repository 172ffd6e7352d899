#pragma once
// Selects the weights that ds4's CPU kernels compute with, and packs them.

#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/packed_tensor.h"
#include "gguf/gguf.h"
#include "weights/weights.h"

namespace ds4::weights {

/// A tensor that is used in matrix products only, and the number of matrices in it.
struct Packable {
    ggml_tensor* tensor;
    int64_t count = 1;
};

/// Appends the packable tensors of a layer, or of a stage of a drafter.
void add_packable(std::vector<Packable>& out, const Layer& layer, const model::Hyperparameters& hp);
/// Returns the packable tensors of a target that ds4's CPU kernels compute with, by its device map.
std::vector<Packable> packable(const Weights& weights, const model::Hyperparameters& hp);

/// Returns the packed shape of a tensor, or nothing when its type has no kernel.
std::optional<kernels::PackedTensor> packed_shape(const Packable& packable);

/// Throws FormatError naming a tensor that is packed in the file although it is not in `packable`, or with another type
/// or number of matrices.
void require_same_packing(const gguf::File& file, const std::vector<Packable>& packable);

/// Packs `count` rows of `columns` elements of `type` to tiles of type `packed`, which is `type` itself, or F32 for any
/// type.
void pack_rows(ggml_type type, const void* rows, int64_t count, int64_t columns, ggml_type packed, void* out);

/// Packs tiles [first, last) of a tensor, counted over all its matrices, from the rows in the file to the data of
/// `tensor`.
void pack_tiles(const gguf::Tensor& source, const ggml_tensor* tensor, int64_t first, int64_t last);

}  // namespace ds4::weights
